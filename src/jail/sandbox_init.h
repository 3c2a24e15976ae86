// The first process of a sandbox, from clone to the agent: straight-line code that enters the
// cgroups, builds the mount tree, drops to the agent's identity and executes it.
//
// Between clone and exec nothing allocates, throws or logs; a step that fails reports its stage and
// ends the process (stage.h).
#pragma once

#include <array>
#include <cstddef>

#include "jail/nest_protocol.h"

namespace cloister::jail {

struct SandboxBirth {
    SpawnOrder order;
    std::array<int, kOrderFdsMax> fds{};
    const char* base_filter = nullptr;
    size_t base_filter_bytes = 0;
    int zygote = -1;  // takes orders for it
};

// `gate` delivers one byte when the id maps are written; its end without one means that the birth
// is called off.
[[noreturn]] void sandbox_init(const SandboxBirth& birth, int gate);

}  // namespace cloister::jail
