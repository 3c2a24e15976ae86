#include "jail/nest_root.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "os/mount.h"

namespace cloister::jail {
namespace {

constexpr const char* kBuildPlace =
    "/tmp";  // any directory that every host has; ours covers it for a moment

Result<void> must(int result, const std::string& what) {
    if (result == 0) return {};
    return last_os_failure(what);
}

Result<std::vector<os::Fd>> copy_devices() {
    std::vector<os::Fd> devices;
    devices.reserve(kNestDevices.size());
    const os::Fd dev = TRY(os::open_file("/dev", O_PATH | O_DIRECTORY));
    for (const char* name : kNestDevices)
        devices.push_back(TRY(os::clone_mount(dev, name, os::kMountNoSuid)));
    return devices;
}

Result<void> make_places() {
    for (const char* name : {"dev", "proc", "root"}) TRY_OK(must(::mkdir(name, 0755), name));
    for (const char* name : kNestDevices) {
        TRY_OK(os::open_file(std::string("dev/") + name, O_CREAT | O_EXCL, 0666));
    }
    return {};
}

Result<void> pivot_here() {
    TRY_OK(must(static_cast<int>(::syscall(SYS_pivot_root, ".", ".")), "entering the nest's root"));
    TRY_OK(os::detach_mount("."));
    return must(::chdir("/"), "entering the nest's root");
}

}  // namespace

Result<void> enter_nest_root() {
    TRY_OK(must(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr),
                "separating the nest's mounts"));
    const auto devices = TRY(copy_devices());
    const os::Fd proc =
        TRY(os::new_mount("proc", {}, os::kMountNoSuid | os::kMountNoDev | os::kMountNoExec));
    const os::Fd root =
        TRY(os::new_mount("tmpfs", {{"size", "64k"}, {"mode", "0755"}}, os::kMountNoSuid));
    TRY_OK(os::attach_mount(root, kBuildPlace));
    TRY_OK(must(::chdir(kBuildPlace), "building the nest's root"));
    TRY_OK(make_places());
    TRY_OK(os::attach_mount(proc, "proc"));
    for (size_t i = 0; i < kNestDevices.size(); ++i) {
        TRY_OK(os::attach_mount(devices[i], std::string("dev/") + kNestDevices[i]));
    }
    TRY_OK(pivot_here());
    mount_attr read_only{};
    read_only.attr_set = MOUNT_ATTR_RDONLY;
    return must(::mount_setattr(AT_FDCWD, "/", 0, &read_only, sizeof(read_only)),
                "making the nest's root read-only");
}

}  // namespace cloister::jail
