// The whole output of a run, by range, out of its sandbox's spool: while the run goes on, and after
// it as long as the sandbox lives and newer output does not need the room.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "engine/files.h"
#include "loop/loop.h"

namespace cloister::engine {

struct OutputRange {
    std::string run;
    std::string stream;  // stdout, stderr, or all: both as they came
    uint64_t offset = 0;
    uint64_t length = INT64_MAX;
};

struct SpooledOutput {
    uint64_t size = 0;     // of the stream as it is now
    bool goes_on = false;  // the run may write more
    uint64_t lost = 0;     // bytes of the run's events that the spool had no room for
    ByteSource next;       // the range, as far as there are bytes
};

// NotFound if the sandbox has no output of that run (any more).
Task<Result<SpooledOutput>> read_output(std::string socket, OutputRange range);

}  // namespace cloister::engine
