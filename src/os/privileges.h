// Giving up privileges for good, in a child that is about to run somebody else's code.
//
// Straight-line calls without allocation: each answers 0, or the errno of what failed.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace cloister::os {

// Empties the bounding and the ambient capability set: nothing can be gained by exec any more.
int drop_capability_bounds();
// Becomes `id` (user, group, no supplementary groups) with all capability sets empty.
int become_id(uid_t id);
// Loads a seccomp filter (an array of `size` bytes of struct sock_filter). Needs no_new_privs.
int load_filter(const void* filter, size_t size);

}  // namespace cloister::os
