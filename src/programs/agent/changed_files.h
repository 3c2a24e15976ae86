// The files that a run created or changed, found by walking its working directory.
#pragma once

#include <ctime>
#include <string>

namespace cloister::agent {

struct WalkRequest {
    std::string directory;
    timespec since{};  // of the clock that file times come from: see file_clock_now()
    int64_t time_max_ms = 0;
};

// `{"artifacts":[{"path","size","modified_ms"},…],"left_out":N}`: regular files with a change at or
// after `since`, in order of their paths. Hidden files, caches and installed packages are not
// listed; neither are names that are not UTF-8, but those are counted. Bounded by limits.h.
std::string changed_files(const WalkRequest& request);

timespec file_clock_now();

}  // namespace cloister::agent
