// Giving up privileges for good, in a child that is about to run somebody else's code.
//
// Straight-line calls without allocation: each answers 0, or the errno of what failed.
#pragma once

#include <linux/capability.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace cloister::os {

// What root of a sandbox may do there: enough for apt, useradd, chown and su. Nothing of it reaches
// beyond the sandbox's own ids.
inline constexpr std::array kInsideRootCapabilities = {
    CAP_CHOWN,  CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID,
    CAP_SETUID, CAP_SETGID,       CAP_KILL,   CAP_SYS_CHROOT,
};

constexpr uint64_t capability_bits(std::span<const int> capabilities) {
    uint64_t bits = 0;
    for (const int capability : capabilities) bits |= uint64_t{1} << capability;
    return bits;
}

// Takes all but `kept` out of the bounding set, and empties the ambient one: nothing else can be
// gained by exec any more.
int drop_capability_bounds(uint64_t kept);
// Becomes `id` (user, group, no supplementary groups), with no capability but `kept`, which it must
// have.
int become_id(uid_t id, uint64_t kept);
// Loads a seccomp filter (an array of `size` bytes of struct sock_filter). Needs no_new_privs.
int load_filter(const void* filter, size_t size);

}  // namespace cloister::os
