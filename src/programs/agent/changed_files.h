// The files that a run created or changed, found by walking its working directory.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>

namespace cloister::agent {

inline constexpr char kWalkEnd = '\n';

// Whether a small write is tried there, too.
enum class DiskProbe : uint8_t { No, Yes };

struct WalkRequest {
    std::string directory;
    timespec since{};  // of the clock that file times come from: see file_clock_now()
    int64_t time_max_ms = 0;
    DiskProbe probe = DiskProbe::No;
};

// `{"artifacts":[{"path","size","modified_ms"},…],"left_out":N,"disk_error":E}`, where E is ENOSPC
// or EDQUOT if the probe found no room, else 0. Regular files with a change at or
// after `since`, in order of their paths. Hidden files, caches and installed packages are not
// listed; neither are names that are not UTF-8, but those are counted. Bounded by limits.h. It ends
// with kWalkEnd, which stands nowhere else.
std::string changed_files(const WalkRequest& request);

// The same if there is so little to look at that nobody has to wait for it; else nothing.
std::optional<std::string> changed_files_of_few(const WalkRequest& request);

timespec file_clock_now();

}  // namespace cloister::agent
