// How a run ended: the one place where what happened becomes an end reason (design §1).
#pragma once

#include <optional>

#include "programs/agent/usage.h"
#include "wire/run_end.h"

namespace cloister::agent {

// Why a run was told to stop; None: it ended by itself.
enum class StopCause { None, Timeout, Cancelled, Interrupted, OutputLimit };

struct RunFacts {
    // What the driver said last of the run; nothing if the interpreter died before.
    std::optional<int> reply_exit_code;
    // How the interpreter died, if it did.
    bool died = false;
    int exit_code = 0;
    int signal = 0;
    bool driver_broke = false;  // it sent nonsense, and was killed for it

    // What the run was stopped for, the weightiest if several came together.
    StopCause stopped = StopCause::None;
    int64_t timeout_ms = 0;
    uint64_t output_max = 0;
    bool output_exceeded = false;

    UsageSince used;
    int64_t wall_ms = 0;
    uint64_t output_bytes = 0;
};

// The weightier of two causes, in the order of the end reasons.
StopCause weightier(StopCause a, StopCause b);

// All of the end but its artifacts.
RunEnd outcome_of(const RunFacts& facts);

}  // namespace cloister::agent
