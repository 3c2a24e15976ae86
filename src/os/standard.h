// The standard descriptors and signals that a program is born with.
#pragma once

#include <string>

#include "base/result.h"

namespace cloister::os {

// Opens /dev/null for each of 0, 1 and 2 that is closed, so that no later file takes its number.
Result<void> ensure_standard_descriptors();
bool is_null_device(int fd);
// From now on `number` does to this process what it does by default.
void let_signal_kill(int number);

}  // namespace cloister::os
