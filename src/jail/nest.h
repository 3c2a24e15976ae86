// Starting a nest: a user namespace Z with its own block of host ids, and a pid namespace that Z
// owns, whose first process is the reaper.
#pragma once

#include <functional>
#include <string>

#include "jail/id_range.h"
#include "os/nested.h"
#include "os/process.h"

namespace cloister::jail {

// What every nest of a warden is started with.
struct NestTools {
    os::Fd reaper;       // the program, in a sealed memory file
    os::Fd base_filter;  // sealed memory files
    os::Fd final_filter;
    os::Fd zygote_filter;
    os::Fd forked_filter;
};

struct NestProcess {
    pid_t pid = 0;    // of the reaper; our child, if we started it
    os::Pidfd pidfd;  // readable when the nest has ended, with everything in it
    os::Fd socket;    // SOCK_SEQPACKET, nest_protocol.h; non-blocking
    os::Fd log;       // what reaper and agents write to stderr; non-blocking
};

// Makes the nest, which listens at `socket`. `place` puts the process that it is given into the
// nest's cgroups, before it runs anything. A nest that cannot start shows by the end of its
// process.
Result<NestProcess> start_nest(const NestTools& tools, const IdRange& ids,
                               const std::string& socket,
                               const std::function<Result<void>(pid_t)>& place);

// Connects to a nest of a former warden and waits for its greeting; Unavailable if it gives none.
Result<NestProcess> adopt_nest(os::FoundProcess reaper, const std::string& socket);

}  // namespace cloister::jail
