#include "os/mount.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "os/process.h"

namespace cloister::os {
namespace {

uint64_t kernel_attributes(uint64_t attributes) {
    uint64_t out = 0;
    if ((attributes & kMountReadOnly) != 0) out |= MOUNT_ATTR_RDONLY;
    if ((attributes & kMountNoSuid) != 0) out |= MOUNT_ATTR_NOSUID;
    if ((attributes & kMountNoDev) != 0) out |= MOUNT_ATTR_NODEV;
    if ((attributes & kMountNoExec) != 0) out |= MOUNT_ATTR_NOEXEC;
    return out;
}

Result<void> set_attributes(const Fd& mount, mount_attr attributes) {
    if (::mount_setattr(mount.get(), "", AT_EMPTY_PATH, &attributes, sizeof(attributes)) != 0) {
        return last_os_failure("setting the attributes of a mount");
    }
    return {};
}

// What the kernel says of a failed mount is read from the file system context itself.
std::string reason_from(const Fd& context) {
    std::array<char, 256> text{};
    const ssize_t got = ::read(context.get(), text.data(), text.size() - 1);
    return got > 0 ? " (" + std::string(text.data(), static_cast<size_t>(got)) + ")" : "";
}

Result<void> configure(const Fd& context, fsconfig_command command, const char* key,
                       const char* value) {
    if (::fsconfig(context.get(), command, key, value, 0) == 0) return {};
    const int number = errno;
    const std::string what = key == nullptr ? "making the file system" : key;
    return os_failure("mount: " + what + reason_from(context), number);
}

Result<void> write_map(const std::string& path, const std::string& map) {
    const Fd file = TRY(open_file(path, O_WRONLY));
    return write_all(file, map);
}

Result<Fd> map_of_child(pid_t child, const std::string& map) {
    const std::string process = "/proc/" + std::to_string(child);
    TRY_OK(write_map(process + "/uid_map", map));
    TRY_OK(write_map(process + "/gid_map", map));
    return open_file(process + "/ns/user", O_RDONLY);
}

}  // namespace

Result<Fd> new_mount(const char* type, MountOptions options, uint64_t attributes) {
    const Fd context(::fsopen(type, FSOPEN_CLOEXEC));
    if (!context.open()) return last_os_failure(std::string("opening file system type ") + type);
    for (const auto& [key, value] : options) {
        const bool flag = value.empty();
        TRY_OK(configure(context, flag ? FSCONFIG_SET_FLAG : FSCONFIG_SET_STRING, key,
                         flag ? nullptr : value.c_str()));
    }
    TRY_OK(configure(context, FSCONFIG_CMD_CREATE, nullptr, nullptr));
    Fd made(static_cast<int>(
        ::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, kernel_attributes(attributes))));
    if (!made.open()) return last_os_failure(std::string("mounting ") + type);
    return made;
}

Result<Fd> clone_mount(const Fd& directory, const std::string& path, uint64_t attributes) {
    Fd copy(::open_tree(directory.get(), path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
    if (!copy.open()) return last_os_failure("copying the mount of " + path);
    mount_attr wanted{};
    wanted.attr_set = kernel_attributes(attributes);
    TRY_OK(set_attributes(copy, wanted));
    return copy;
}

Result<void> map_ids(const Fd& mount, const Fd& user_namespace) {
    mount_attr wanted{};
    wanted.attr_set = MOUNT_ATTR_IDMAP;
    wanted.userns_fd = static_cast<uint64_t>(user_namespace.get());
    return set_attributes(mount, wanted);
}

Result<void> attach_mount(const Fd& mount, const std::string& path) {
    if (::move_mount(mount.get(), "", AT_FDCWD, path.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0) {
        return last_os_failure("attaching a mount at " + path);
    }
    return {};
}

Result<void> detach_mount(const std::string& path) {
    if (::umount2(path.c_str(), MNT_DETACH) != 0) return last_os_failure("unmounting " + path);
    return {};
}

Result<void> enter_private_mounts() {
    if (::unshare(CLONE_NEWNS) != 0) return last_os_failure("making a mount namespace");
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) {
        return last_os_failure("separating our mounts from the host's");
    }
    return {};
}

Result<Fd> make_id_map(const std::string& map) {
    const pid_t self = ::getpid();
    const auto child = static_cast<pid_t>(
        ::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, nullptr, nullptr, nullptr, 0));
    if (child < 0) return last_os_failure("making a user namespace");
    if (child == 0) {
        die_with(self);  // it holds copies of our locks
        for (;;) ::pause();
    }
    Result<Fd> made = map_of_child(child, map);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    return made;
}

}  // namespace cloister::os
