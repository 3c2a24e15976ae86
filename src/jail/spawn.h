// Making one sandbox in a nest. Runs in a child that the reaper forked for it, and never returns.
//
//   reaper ── fork ──► spawn ── clone (all namespaces, parent = reaper) ──► sandbox_init ── exec
//   ──► agent
//
// The sandbox's first process must be the reaper's child, not ours, so that the reaper reaps it and
// reports its end; CLONE_PARENT does that, and a pid 1 may not use it: hence the process in
// between.
#pragma once

#include <linux/filter.h>

#include <string>
#include <vector>

#include "jail/nest_protocol.h"
#include "os/fd.h"

namespace cloister::jail {

struct Spawn {
    SpawnOrder order;
    std::vector<os::Fd> fds;  // as SpawnOrder says
    std::string base_filter;  // bytes of struct sock_filter
    int zygote = -1;          // the end that takes orders for the zygote
    int warden = -1;          // the connection that the order came by takes the report of the birth
};

// Whether the message carries what its record promises.
bool well_formed(const Spawn& spawn);

[[noreturn]] void spawn_sandbox(const Spawn& spawn);

}  // namespace cloister::jail
