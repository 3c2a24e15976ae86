// Files of a live sandbox, through its agent (contract/agent-protocol.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "engine/agent.h"
#include "engine/file_entry.h"
#include "loop/loop.h"
#include "os/fd.h"

namespace cloister::engine {

// Each call answers the next piece; an empty one is the end.
using ByteSource = std::function<Task<Result<std::string>>()>;
ByteSource source_of(std::string bytes);
// The data frames that an agent sends now.
ByteSource source_of(AgentConnection agent);

struct OpenFile {
    uint64_t size = 0;
    ByteSource next;
    std::optional<FileEntry> entry = std::nullopt;  // of a file of a sandbox
    std::shared_ptr<os::Fd> descriptor = nullptr;   // then the bytes are there, and not in `next`
    uint64_t offset = 0;                            // of the first byte, in it
    std::shared_ptr<void> use = nullptr;            // what it keeps alive
};

// Whose rights an operation has, and who owns what it makes: "user" or "root".
struct FileTarget {
    std::string path;  // absolute, or relative to /home/user
    std::string user = "user";
};
// How its bytes are wanted: from `next` in any case, or from a descriptor where there is one.
enum class Bytes { Pieces, Descriptor };
Task<Result<OpenFile>> read_file(std::string socket, FileTarget file, Bytes bytes = Bytes::Pieces);

struct WriteSettings {
    std::optional<uint32_t> mode = std::nullopt;
    std::optional<StringMap> metadata = std::nullopt;
    std::string if_match{};  // an etag, or "*"
    bool if_absent = false;
    bool append = false;
    bool durable = false;
};
struct Written {
    uint64_t size = 0;
    FileEntry entry;
};
// If `source` fails, the old file stays, and its error is the answer.
Task<Result<Written>> write_file(std::string socket, FileTarget file, WriteSettings settings,
                                 ByteSource source);

// An operation that is one question and one answer: the request without its path and user.
Task<Result<json::object>> ask_about_file(std::string socket, FileTarget file,
                                          json::object request);

// The tar archive of a directory, or of one file.
Task<Result<ByteSource>> pack_files(std::string socket, FileTarget directory);
struct Unpacked {
    uint64_t entries = 0;
    uint64_t bytes = 0;
};
enum class Sync { No, Yes };
Task<Result<Unpacked>> unpack_files(std::string socket, FileTarget directory, Sync sync,
                                    ByteSource archive);

// What changes below a directory. Errors of next(): as for AgentConnection; Cancelled after
// close().
class FileWatch {
  public:
    static Task<Result<std::shared_ptr<FileWatch>>> open(std::string socket, FileTarget directory,
                                                         bool recursive);
    // {"event", "path", …} as contract/openapi.yaml has it.
    Task<Result<json::object>> next();
    void close() { agent_.close(); }

  private:
    explicit FileWatch(AgentConnection agent) : agent_(std::move(agent)) {}
    AgentConnection agent_;
};

}  // namespace cloister::engine
