// The last steps of a process that is about to execute another program. Straight-line code after
// clone: nothing allocates; a step that fails ends the process (stage.h).
#pragma once

#include <cstddef>

#include "jail/stage.h"

namespace cloister::jail {

// `filter`: an array of `struct sock_filter`. Needs no_new_privs.
void load_birth_filter(Steps& steps, const char* filter, size_t bytes);

}  // namespace cloister::jail
