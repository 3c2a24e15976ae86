// What changes below a directory, as a stream of events.
#pragma once

#include "ops/file_access.h"

namespace cloister::ops {

struct WatchStream {
    std::shared_ptr<engine::FileWatch> watch;
    std::shared_ptr<void> use;  // the sandbox is in use while somebody watches
};
enum class WatchDepth { Directory, Tree };
Task<Result<WatchStream>> watch_files(engine::Engine& engine, engine::Principal caller,
                                      FileInput input, WatchDepth depth);

}  // namespace cloister::ops
