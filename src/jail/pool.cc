#include "jail/pool.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "base/ids.h"
#include "base/limits.h"
#include "os/btrfs.h"
#include "os/loop_device.h"
#include "os/mount.h"
#include "os/process.h"
#include "wire/layout.h"

namespace cloister::jail {
namespace {

std::string path_of_template(std::string_view name) {
    return std::string(kTemplates) + "/" + std::string(name);
}

Result<uint64_t> free_bytes(const std::string& directory) {
    struct statvfs space{};
    if (::statvfs(directory.c_str(), &space) != 0)
        return last_os_failure("asking for the free space of " + directory);
    return uint64_t{space.f_bavail} * space.f_frsize;
}

std::string gib(uint64_t bytes) {
    return std::to_string(bytes / limits::kGiB) + " GiB";
}

Result<uint64_t> choose_size(const std::string& data, uint64_t asked) {
    const uint64_t free = TRY(free_bytes(data));
    const uint64_t wanted =
        asked != 0 ? asked : std::clamp(free / 4, limits::kPoolMin, limits::kPoolDefaultMax);
    if (wanted < limits::kPoolMin) {
        return make_error(ErrorKind::InvalidArgument, "a pool of " + std::to_string(wanted) +
                                                          " bytes is too small: give at least " +
                                                          std::to_string(limits::kPoolMin));
    }
    if (wanted > free) {
        return make_error(ErrorKind::ResourceExhausted,
                          "the pool needs " + gib(wanted) + " but only " + gib(free) +
                              " are free at " + data +
                              ": free some space, or choose another data directory");
    }
    return wanted / limits::kMiB * limits::kMiB;
}

Result<void> allocate(const std::string& path, uint64_t bytes) {
    const os::Fd file = TRY(os::open_file(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600));
    const int failed = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes));
    if (failed != 0) return os_failure("allocating the pool", failed);
    return {};
}

Result<void> ensure_directory(const os::Fd& parent, const std::string& path) {
    if (::mkdirat(parent.get(), path.c_str(), 0700) == 0 || errno == EEXIST) return {};
    return last_os_failure("making " + path);
}

struct Mounted {
    os::Fd mount;
    dev_t device = 0;
};

Result<Mounted> mount_device(const std::string& image) {
    const os::LoopDevice device = TRY(os::attach_loop(image));
    struct stat about{};
    if (::fstat(device.fd.get(), &about) != 0)
        return last_os_failure("asking about " + device.path);
    // Discards would punch holes into the image and undo its allocation.
    os::Fd mount = TRY(os::new_mount("btrfs", {{"source", device.path}, {"nodiscard", ""}},
                                     os::kMountNoSuid | os::kMountNoDev));
    return Mounted{.mount = std::move(mount), .device = about.st_rdev};
}

Result<uint64_t> size_of(const os::Fd& file) {
    struct stat status{};
    if (::fstat(file.get(), &status) != 0) return last_os_failure("looking at the pool");
    return static_cast<uint64_t>(status.st_size);
}

Result<void> check_growth(const std::string& data, uint64_t now, uint64_t wanted) {
    if (wanted <= now) {
        return make_error(ErrorKind::InvalidArgument,
                          "the pool has " + gib(now) + " already: give a larger size");
    }
    const uint64_t free = TRY(free_bytes(data));
    if (free >= kHostReserve && wanted - now <= free - kHostReserve) return {};
    return make_error(ErrorKind::ResourceExhausted,
                      "the pool needs " + gib(wanted - now) + " more and the host " +
                          gib(kHostReserve) + " for itself, but only " + gib(free) +
                          " are free at " + data + ": free some space, or give a smaller size");
}

// The file grows whole or not at all.
Result<void> lengthen(const os::Fd& file, uint64_t now, uint64_t wanted) {
    const int failed =
        ::posix_fallocate(file.get(), static_cast<off_t>(now), static_cast<off_t>(wanted - now));
    if (failed == 0) return {};
    if (::ftruncate(file.get(), static_cast<off_t>(now)) != 0)
        return last_os_failure("giving the blocks back");
    return os_failure("taking blocks for the pool", failed);
}

}  // namespace

Pool::Pool(os::Fd root, const std::string& data)
    : root_(std::move(root)), data_(data), path_(layout::pool_directory(data)) {}

Result<void> make_pool_image(const std::string& data, uint64_t bytes) {
    const std::string image = layout::pool_image(data);
    if (::access(image.c_str(), F_OK) == 0) return {};
    const std::string partial = image + ".partial";
    const uint64_t size = TRY(choose_size(data, bytes));
    TRY_OK(allocate(partial, size));
    // One device, so copies of metadata would lie beside each other on the same disk.
    TRY_OK(os::run_program({"mkfs.btrfs", "--quiet", "--force", "--nodiscard", "--metadata",
                            "single", "--data", "single", "--label", "cloister", partial}));
    if (std::rename(partial.c_str(), image.c_str()) != 0)
        return last_os_failure("renaming the pool");
    return {};
}

Result<Pool> Pool::mount(const std::string& data) {
    const std::string place = layout::pool_directory(data);
    if (::mkdir(place.c_str(), 0700) != 0 && errno != EEXIST)
        return last_os_failure("making " + place);
    const Mounted mounted = TRY(mount_device(layout::pool_image(data)));
    TRY_OK(os::attach_mount(mounted.mount, place));
    Pool pool(TRY(os::open_file(place, O_RDONLY | O_DIRECTORY)), data);
    pool.device_ = mounted.device;
    if (::fchmod(pool.root_.get(), 0700) != 0) return last_os_failure("closing the pool to others");
    // A warden that was killed while the pool grew left a larger file.
    TRY_OK(os::update_loop_size(layout::pool_image(data)));
    TRY_OK(os::fill_device(pool.root_));
    pool.has_quotas_ = os::enable_quotas(pool.root_).has_value();
    for (const char* name : {kTemplates, kRuntimes, kProjects, kSandboxes, kSpools}) {
        TRY_OK(ensure_directory(pool.root_, name));
    }
    return pool;
}

Result<os::Fd> Pool::directory(const std::string& path) const {
    return os::open_at(root_, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

Result<std::vector<std::string>> Pool::list(const std::string& path) const {
    os::Fd fd = TRY(directory(path));
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(fd.get()), ::closedir);
    if (!entries) return last_os_failure("listing " + path);
    (void)fd.release();  // closedir closes it
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(entries.get())) {
        const std::string name = entry->d_name;
        if (name != "." && name != "..") names.push_back(name);
    }
    return names;
}

Result<PoolSpace> Pool::space() const {
    struct statvfs space{};
    if (::fstatvfs(root_.get(), &space) != 0)
        return last_os_failure("asking for the pool's free space");
    return PoolSpace{.bytes = uint64_t{space.f_blocks} * space.f_frsize,
                     .free = uint64_t{space.f_bavail} * space.f_frsize};
}

Result<void> Pool::grow(uint64_t bytes) const {
    const std::string image = layout::pool_image(data_);
    const os::Fd file = TRY(os::open_file(image, O_RDWR | O_NOFOLLOW));
    const uint64_t wanted = bytes / limits::kMiB * limits::kMiB;
    const uint64_t now = TRY(size_of(file));
    TRY_OK(check_growth(data_, now, wanted));
    TRY_OK(lengthen(file, now, wanted));
    TRY_OK(os::update_loop_size(image));
    return os::fill_device(root_);
}

Result<uint64_t> Pool::template_bytes() const {
    uint64_t bytes = 0;
    for (const std::string& name : TRY(list(kTemplates))) {
        const auto subvolume = directory(std::string(kTemplates) + "/" + name);
        if (subvolume) bytes += TRY(os::used_bytes(*subvolume));  // else a file that names one
    }
    return bytes;
}

Result<std::string> Pool::built_in_template(std::string_view name) const {
    const std::string path = path_of_template(name);
    const auto file = os::open_at(root_, path, O_RDONLY | O_NOFOLLOW);
    if (!file)
        return make_error(ErrorKind::NotFound, "no image of `" + std::string(name) +
                                                   "` was imported yet: run `cloister-warden "
                                                   "prepare`");
    std::string revision = TRY(os::read_all(*file, 64));
    if (!is_id(revision))
        return make_error(ErrorKind::Internal, path + " of the pool names no revision");
    return revision;
}

Result<void> Pool::set_built_in_template(std::string_view name, const std::string& revision) const {
    return os::write_file_atomically(path_ + "/" + path_of_template(name), revision, 0600);
}

Result<void> Pool::sync() const {
    if (::syncfs(root_.get()) != 0) return last_os_failure("syncing the pool");
    return {};
}

Result<void> Pool::unmount() {
    root_.reset();
    return os::detach_mount(path_);
}

}  // namespace cloister::jail
