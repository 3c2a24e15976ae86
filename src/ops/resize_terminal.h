// Changes the size of a process's terminal.
#pragma once

#include "ops/get_process.h"

namespace cloister::ops {

Task<Result<void>> resize_terminal(engine::Engine& engine, engine::Principal caller,
                                   ProcessName name, engine::TerminalSize size);

}  // namespace cloister::ops
