// Exit codes of `cloister`: the tables of contract/errors.md, which a test compares with this file.
#pragma once

#include <optional>

#include "base/error.h"
#include "wire/run_end.h"

namespace cloister::cli {

inline constexpr int kWrongUsage = 2;
inline constexpr int kNoService = 69;  // the service cannot be reached or started

int exit_code_of(ErrorKind kind);
// `exit_code` is the program's own, as the run reports it.
int exit_code_of(EndReason reason, std::optional<int> exit_code);

}  // namespace cloister::cli
