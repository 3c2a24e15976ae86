// Files of a live sandbox, read and written through its agent, in pieces.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "engine/agent.h"
#include "loop/loop.h"

namespace cloister::engine {

// Each call answers the next piece; an empty one is the end.
using ByteSource = std::function<Task<Result<std::string>>()>;
ByteSource source_of(std::string bytes);
// The data frames that an agent sends now.
ByteSource source_of(AgentConnection agent);

struct OpenFile {
    uint64_t size = 0;
    ByteSource next;
};
// `path`: absolute, or relative to /home/user.
Task<Result<OpenFile>> read_file(std::string socket, std::string path);
// Answers the size. If `source` fails, the old file stays, and its error is the answer.
Task<Result<uint64_t>> write_file(std::string socket, std::string path, ByteSource source);

}  // namespace cloister::engine
