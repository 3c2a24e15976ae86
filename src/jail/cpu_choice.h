// Which of the host's CPUs a sandbox runs on.
#pragma once

#include <sched.h>

#include <cstdint>

namespace cloister::jail {

// `count` of the `allowed` CPUs, or all of them if there are no more. Neighbouring slots get
// different ones, so that sandboxes spread over the host.
cpu_set_t choose_cpus(const cpu_set_t& allowed, uint32_t count, uint32_t slot);

}  // namespace cloister::jail
