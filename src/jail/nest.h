// Starting a nest: a user namespace Z with its own block of host ids, and a pid namespace that Z
// owns, whose first process is the reaper.
#pragma once

#include <functional>

#include "jail/id_range.h"
#include "os/process.h"

namespace cloister::jail {

// What every nest of a warden is started with.
struct NestTools {
    os::Fd reaper;       // the program, in a sealed memory file
    os::Fd base_filter;  // sealed memory files
    os::Fd final_filter;
};

struct NestProcess {
    pid_t pid = 0;  // of the reaper, our child
    os::Pidfd pidfd;
    os::Fd socket;  // SOCK_SEQPACKET, nest_protocol.h; non-blocking
    os::Fd log;     // what reaper and agents write to stderr; non-blocking
};

// Makes the nest. `place` puts the process that it is given into the nest's cgroups, before it runs
// anything. A nest that cannot start shows by the end of its process.
Result<NestProcess> start_nest(const NestTools& tools, const IdRange& ids,
                               const std::function<Result<void>(pid_t)>& place);

}  // namespace cloister::jail
