// Subvolumes of a mounted btrfs: made, copied, bounded and deleted by descriptor and name.
#pragma once

#include <string>

#include "os/fd.h"

namespace cloister::os {

enum class Access { ReadOnly, ReadWrite };

// AlreadyExists if the name is taken.
Result<void> create_subvolume(const Fd& directory, const std::string& name);
Result<void> snapshot_subvolume(const Fd& source, const Fd& directory, const std::string& name,
                                Access access);
// With everything in it; the space comes back in the background. A name that is not there is a
// success.
Result<void> delete_subvolume(const Fd& directory, const std::string& name);
Result<void> make_read_only(const Fd& subvolume);

// Lets the file system use all of a device that has become larger.
Result<void> fill_device(const Fd& root);

// Counts the bytes of each subvolume from now on: simple quotas where the kernel has them (6.7),
// else the older ones.
Result<void> enable_quotas(const Fd& root);
Result<void> limit_bytes(const Fd& subvolume, uint64_t bytes);
// Bytes that the subvolume holds by the quota's count, with those that were written but are not on
// disk yet. What was deleted counts until the next commit, at most half a minute later.
Result<uint64_t> used_bytes(const Fd& subvolume);

}  // namespace cloister::os
