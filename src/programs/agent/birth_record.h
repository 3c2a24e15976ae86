// What the agent was born with (wire/birth.h), as owned descriptors.
#pragma once

#include <array>
#include <vector>

#include "base/result.h"
#include "os/fd.h"
#include "wire/birth.h"
#include "wire/fork_order.h"

namespace cloister::agent {

struct Birth {
    birth::Record record;
    os::Fd listener;           // of the agent protocol
    os::Fd ready;              // takes one byte when connections are accepted
    std::string final_filter;  // an array of struct sock_filter; empty only in tests
    os::Fd zygote;             // takes orders for the nest's zygote; closed only in tests
    // What such an order names, of this sandbox, in the order of wire/fork_order.h.
    std::array<os::Fd, forking::kNamespaces> namespaces;
    os::Fd spool;  // directory for the whole output of runs; closed only in tests
    // Of the `user` cgroup; closed where the host has none.
    os::Fd memory_peak, memory_events, cpu_usage, pids_events, memory_now, memory_stat, oom_event;
    std::array<os::Fd, birth::kProcFiles> proc_view;  // see proc_view.h; closed only in tests
    std::vector<os::Fd> procs;                        // its cgroup.procs in each hierarchy
};

// Takes over the fixed descriptors; all of them are close-on-exec from here on.
Result<Birth> take_birth();

}  // namespace cloister::agent
