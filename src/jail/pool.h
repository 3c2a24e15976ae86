// The btrfs pool: a file in the data directory that holds templates, runtimes and the sandboxes'
// files.
//
//     templates/REVISION        a root file system, read-only
//     templates/NAME            a file: the revision of the built-in template of that name
//     runtimes/ID               agent and interpreter drivers, read-only
//     projects/PROJECT/ID       a project's own snapshot of a template or runtime
//     sandboxes/SANDBOX         upper and work directory of a sandbox's root, bound by a quota
//     spools/SANDBOX            the whole output of its runs, bound by a quota of its own
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "os/fd.h"

namespace cloister::jail {

inline constexpr const char* kTemplates = "templates";
inline constexpr const char* kRuntimes = "runtimes";
inline constexpr const char* kProjects = "projects";
inline constexpr const char* kSandboxes = "sandboxes";
inline constexpr const char* kSpools = "spools";

// Makes DATA/pool.img if it is not there: all of its blocks are taken from the host at once, since
// a pool that finds the host's disk full turns read-only. `bytes` 0: a quarter of the free space,
// within the limits.
Result<void> make_pool_image(const std::string& data, uint64_t bytes);

// What the host keeps for itself when the pool grows: its own files, our database and logs.
inline constexpr uint64_t kHostReserve = 1ull << 30;

struct PoolSpace {
    uint64_t bytes = 0;
    uint64_t free = 0;
};

class Pool {
  public:
    // Mounts the pool in the caller's (private) mount namespace and makes its directories.
    static Result<Pool> mount(const std::string& data);

    const os::Fd& root() const { return root_; }
    // An open directory of the pool: "templates", "projects/PROJECT".
    Result<os::Fd> directory(const std::string& path) const;
    // Names in a directory.
    Result<std::vector<std::string>> list(const std::string& path) const;
    // Whether the pool bounds what a sandbox writes.
    bool has_quotas() const { return has_quotas_; }
    // The block device that it lies on.
    dev_t device() const { return device_; }
    Result<PoolSpace> space() const;
    // Makes the pool larger, its blocks taken from the host first. Slow; killed at any point, the
    // pool is as it was or partly grown. InvalidArgument for a size that it has already,
    // ResourceExhausted if the host would be left with less than kHostReserve.
    Result<void> grow(uint64_t bytes) const;
    // Bytes that the templates hold.
    Result<uint64_t> template_bytes() const;
    // The revision of a built-in template; NotFound if no image of it was imported yet.
    Result<std::string> built_in_template(std::string_view name) const;
    Result<void> set_built_in_template(std::string_view name, const std::string& revision) const;
    // Writes everything to the disk.
    Result<void> sync() const;
    Result<void> unmount();

  private:
    Pool(os::Fd root, const std::string& data);
    os::Fd root_;
    std::string data_;
    std::string path_;  // where it is mounted
    bool has_quotas_ = false;
    dev_t device_ = 0;
};

}  // namespace cloister::jail
