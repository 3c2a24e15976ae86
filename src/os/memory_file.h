// Files that exist in memory only and can never change again: what a program hands to processes
// that it does not trust, and programs that are executed without a path.
#pragma once

#include <string>
#include <string_view>

#include "os/fd.h"

namespace cloister::os {

// `name` shows in /proc/PID/exe and /proc/PID/fd only. Positioned at its start.
Result<Fd> make_sealed_file(const std::string& name, std::string_view bytes);
// The same file with a reading position of its own.
Result<Fd> reopen_for_reading(const Fd& file);

}  // namespace cloister::os
