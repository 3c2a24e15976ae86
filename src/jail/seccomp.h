// Which system calls a sandbox may make: one table (seccomp.cc), compiled to two filters.
//
// Filters are inherited and can only shrink. `base` is loaded once, before the agent is executed,
// and holds for everything in the sandbox. `final` takes away what user code does not need on top
// of it; the agent loads it in every user process as the last step before it executes the program.
// The zygote has `zygote`: `base` without what forking into a sandbox asks for. Those that it forks
// add `forked`, which is `final` and all that `base` denies and `zygote` does not: so they end with
// the same as everybody else.
//
// Nothing here is the boundary by itself: namespaces and missing capabilities are. The filters cut
// how much of the kernel can be reached at all.
#pragma once

#include <string>

#include "base/result.h"

namespace cloister::jail {

enum class FilterKind { Base, Final, Zygote, Forked };

// The filter as an array of `struct sock_filter`, ready for prctl(PR_SET_SECCOMP).
Result<std::string> compile_filter(FilterKind kind);

}  // namespace cloister::jail
