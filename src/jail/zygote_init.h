// The zygote's process, from the reaper's fork to its interpreter: straight-line code that enters
// the cgroup, builds the mount tree, drops to the zygote's identity and executes it.
//
// A step that fails is reported to the reaper on `requests` (stage.h), and ends the process.
#pragma once

#include <string>
#include <vector>

#include "jail/nest_protocol.h"
#include "os/fd.h"

namespace cloister::jail {

struct ZygoteBirth {
    ZygoteOrder order;
    std::vector<os::Fd> fds;    // as ZygoteOrder says
    const std::string& filter;  // its own, and that of its children: bytes of struct sock_filter
    const std::string& forked_filter;
    const os::Fd& requests;
};

bool well_formed(const ZygoteBirth& birth);

[[noreturn]] void zygote_init(const ZygoteBirth& birth);

}  // namespace cloister::jail
