// The mount tree of a sandbox, built by its first process inside its own namespaces. Straight-line
// code after clone: nothing allocates; a step that fails ends the process (stage.h).
#pragma once

#include <array>
#include <cstdint>

#include "jail/stage.h"
#include "wire/birth.h"

namespace cloister::jail {

struct MountTree {
    int root = -1;  // detached mounts, made by the warden
    int runtime = -1;
    uint64_t shm_bytes = 0;
    uint32_t cpu = 0;
};

// Writable descriptors of the files that the sandbox sees over those of the same name in /proc.
using ProcView = std::array<int, birth::kProcFiles>;

// Afterwards: / is the sandbox's root, with /opt/cloister, /dev, /dev/shm, /dev/pts, /proc (masked)
// and /run; there is no /sys; nothing of the nest or the host is left in the tree. The files of the
// view are empty, but `cpuinfo`, which holds the beginning of the host's: the agent fills them.
ProcView build_mount_tree(Steps& steps, const MountTree& tree);

// The same for the zygote, in a mount namespace of its own: the template as it is, read-only, with
// /opt/cloister, a /proc of processes only, /dev with nothing but device nodes, and a small /tmp.
void build_zygote_tree(Steps& steps, int root, int runtime);

}  // namespace cloister::jail
