// Mounts, made by descriptor with the mount API of Linux 5.12 and later: a mount is a detached Fd
// until it is attached somewhere, so nothing half-made is ever visible, and an Fd that closes takes
// its mount with it.
//
//     Fd tmp = TRY(new_mount("tmpfs", {{"size", "1m"}}, kMountNoSuid | kMountNoDev));
//     TRY_OK(attach_mount(tmp, "/somewhere"));
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include "os/fd.h"

namespace cloister::os {

// Attributes of a mount; combine with |.
inline constexpr uint64_t kMountReadOnly = 1;
inline constexpr uint64_t kMountNoSuid = 2;
inline constexpr uint64_t kMountNoDev = 4;
inline constexpr uint64_t kMountNoExec = 8;

// An option with an empty value is a flag ("nodiscard").
using MountOptions = std::initializer_list<std::pair<const char*, std::string>>;

// A new file system that is mounted nowhere yet.
Result<Fd> new_mount(const char* type, MountOptions options, uint64_t attributes);
// A copy of the mount that `path` (below `directory`) lies on, rooted at `path`; without the mounts
// on it.
Result<Fd> clone_mount(const Fd& directory, const std::string& path, uint64_t attributes);
// Shows the files of a detached mount with the ids of a user namespace: an id inside it, on disk,
// is its id outside.
Result<void> map_ids(const Fd& mount, const Fd& user_namespace);
Result<void> attach_mount(const Fd& mount, const std::string& path);
// Takes the mount at `path` out of the tree at once; it ends when its last user has gone.
Result<void> detach_mount(const std::string& path);

// A mount namespace of our own. Mounts of the host that go away go away here too (so that we pin no
// disk of anybody), but none of ours is seen outside.
Result<void> enter_private_mounts();

// A user namespace that exists only as a map of ids, for map_ids. Lines of "inside outside count".
Result<Fd> make_id_map(const std::string& map);

}  // namespace cloister::os
