// bash, wherever the template has it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace cloister::shell {

// NotFound, in words for a person, if there is none.
Result<std::string> find_bash();

// Becomes a bash, in a forked child: signals do what they do by default, and all descriptors but 0,
// 1 and 2 are closed. `env` nullptr: that of this process.
[[noreturn]] void execute_bash(const std::string& path, const std::vector<std::string>& words,
                               const std::vector<std::string>* env);

}  // namespace cloister::shell
