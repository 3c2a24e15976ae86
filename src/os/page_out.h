// Gives the memory of processes that do not run to the host's swap.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace cloister::os {

// Whether this host has swap now.
bool has_swap();
// From the text of /proc/meminfo.
bool swap_in(std::string_view meminfo);

// What only this process has is written to the swap, and read again when it is touched; what it
// shares (libraries, pages of the process that it was forked from) stays. Answers how many bytes
// the kernel was asked for. Takes its time with the disk, so call it in a helper.
Result<uint64_t> page_out(pid_t process);

}  // namespace cloister::os
