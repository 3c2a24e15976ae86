#include "os/btrfs.h"

#include <fmt/format.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>

namespace cloister::os {
namespace {

constexpr uint64_t kEnableSimpleQuotas = 4;  // BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA of Linux 6.7

Result<btrfs_ioctl_vol_args_v2> named(const std::string& name) {
    btrfs_ioctl_vol_args_v2 arguments{};
    if (name.size() >= sizeof(arguments.name)) {
        return make_error(ErrorKind::InvalidArgument, "a subvolume name that is too long");
    }
    std::ranges::copy(name, arguments.name);
    return arguments;
}

Error failure(const std::string& what, const std::string& name) {
    if (errno == EEXIST)
        return make_error(ErrorKind::AlreadyExists, "subvolume " + name + " exists");
    return last_os_failure(what + " subvolume " + name);
}

bool enable(const Fd& root, uint64_t command) {
    btrfs_ioctl_quota_ctl_args arguments{};
    arguments.cmd = command;
    return ::ioctl(root.get(), BTRFS_IOC_QUOTA_CTL, &arguments) == 0 || errno == EEXIST;
}

Result<uint64_t> subvolume_id(const Fd& subvolume) {
    btrfs_ioctl_ino_lookup_args arguments{};
    arguments.objectid = BTRFS_FIRST_FREE_OBJECTID;
    if (::ioctl(subvolume.get(), BTRFS_IOC_INO_LOOKUP, &arguments) != 0) {
        return last_os_failure("asking for a subvolume's id");
    }
    return arguments.treeid;
}

// The kernel's directory of figures about a subvolume's quota, kept up to date in memory.
Result<std::string> quota_group(const Fd& subvolume) {
    btrfs_ioctl_fs_info_args info{};
    if (::ioctl(subvolume.get(), BTRFS_IOC_FS_INFO, &info) != 0)
        return last_os_failure("asking for a file system's id");
    std::string id;
    for (size_t i = 0; i < sizeof(info.fsid); ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) id += '-';
        id += fmt::format("{:02x}", info.fsid[i]);
    }
    return fmt::format("/sys/fs/btrfs/{}/qgroups/0_{}", id, TRY(subvolume_id(subvolume)));
}

Result<uint64_t> read_number(const std::string& path) {
    const std::string text = TRY(read_file(path, 64));
    uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

}  // namespace

Result<void> create_subvolume(const Fd& directory, const std::string& name) {
    btrfs_ioctl_vol_args_v2 arguments = TRY(named(name));
    if (::ioctl(directory.get(), BTRFS_IOC_SUBVOL_CREATE_V2, &arguments) != 0) {
        return failure("making", name);
    }
    return {};
}

Result<void> snapshot_subvolume(const Fd& source, const Fd& directory, const std::string& name,
                                Access access) {
    btrfs_ioctl_vol_args_v2 arguments = TRY(named(name));
    arguments.fd = source.get();
    if (access == Access::ReadOnly) arguments.flags = BTRFS_SUBVOL_RDONLY;
    if (::ioctl(directory.get(), BTRFS_IOC_SNAP_CREATE_V2, &arguments) != 0) {
        return failure("copying to", name);
    }
    return {};
}

Result<void> delete_subvolume(const Fd& directory, const std::string& name) {
    btrfs_ioctl_vol_args_v2 arguments = TRY(named(name));
    if (::ioctl(directory.get(), BTRFS_IOC_SNAP_DESTROY_V2, &arguments) == 0 || errno == ENOENT)
        return {};
    return failure("deleting", name);
}

Result<void> make_read_only(const Fd& subvolume) {
    uint64_t flags = BTRFS_SUBVOL_RDONLY;
    if (::ioctl(subvolume.get(), BTRFS_IOC_SUBVOL_SETFLAGS, &flags) != 0) {
        return last_os_failure("making a subvolume read-only");
    }
    return {};
}

Result<void> fill_device(const Fd& root) {
    btrfs_ioctl_vol_args arguments{};
    constexpr std::string_view kAll = "max";
    std::ranges::copy(kAll, arguments.name);
    if (::ioctl(root.get(), BTRFS_IOC_RESIZE, &arguments) != 0)
        return last_os_failure("enlarging the file system");
    return {};
}

Result<void> enable_quotas(const Fd& root) {
    if (enable(root, kEnableSimpleQuotas) || enable(root, BTRFS_QUOTA_CTL_ENABLE)) return {};
    return last_os_failure("enabling quotas of the pool");
}

Result<void> limit_bytes(const Fd& subvolume, uint64_t bytes) {
    btrfs_ioctl_qgroup_limit_args
        arguments{};  // qgroup 0 stands for the descriptor's own subvolume
    arguments.lim.flags = BTRFS_QGROUP_LIMIT_MAX_RFER;
    arguments.lim.max_rfer = bytes;
    if (::ioctl(subvolume.get(), BTRFS_IOC_QGROUP_LIMIT, &arguments) != 0) {
        return last_os_failure("limiting the size of a subvolume");
    }
    return {};
}

Result<uint64_t> used_bytes(const Fd& subvolume) {
    const std::string group = TRY(quota_group(subvolume));
    return TRY(read_number(group + "/referenced")) + TRY(read_number(group + "/rsv_data"));
}

}  // namespace cloister::os
