// The mount tree of a sandbox, built by its first process inside its own namespaces. Straight-line
// code after clone: nothing allocates; a step that fails ends the process (stage.h).
#pragma once

#include <cstdint>

#include "jail/stage.h"

namespace cloister::jail {

struct MountTree {
    int root = -1;  // detached mounts, made by the warden
    int runtime = -1;
    uint64_t shm_bytes = 0;
};

// Afterwards: / is the sandbox's root, with /opt/cloister, /dev, /dev/shm, /dev/pts, /proc (masked)
// and /run; there is no /sys; nothing of the nest or the host is left in the tree.
void build_mount_tree(Steps& steps, const MountTree& tree);

}  // namespace cloister::jail
