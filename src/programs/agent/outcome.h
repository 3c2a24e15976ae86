// How a run ended: the one place where what happened becomes an end reason (design §1).
#pragma once

#include <optional>

#include "programs/agent/usage.h"
#include "wire/run_end.h"

namespace cloister::agent {

// Why a run was told to stop; None: it ended by itself.
enum class StopCause { None, Timeout, Cancelled, Interrupted, OutputLimit, CpuLimit };

// What a run may use; 0: nobody said. Its end names the one that fired.
struct RunLimits {
    int64_t timeout_ms = 0;
    int64_t cpu_time_ms = 0;
    uint64_t output_max = 0;
    uint64_t memory_max = 0;
    uint64_t pids_max = 0;
    uint64_t disk_max = 0;
};

struct RunFacts {
    // What the driver said last of the run; nothing if the interpreter died before.
    std::optional<int> reply_exit_code;
    bool reply_state_lost = false;
    // How the interpreter died, if it did.
    bool died = false;
    int exit_code = 0;
    int signal = 0;
    bool driver_broke = false;  // it sent nonsense, and was killed for it

    // What the run was stopped for, the weightiest if several came together.
    StopCause stopped = StopCause::None;
    bool output_exceeded = false;
    // ENOSPC or EDQUOT if a write of the run found no room, else 0. There is no counter of these:
    // it is the error that ended the code, or what a write of ours met after a run that failed.
    int disk_error = 0;

    RunLimits limits;
    UsageSince used;
    int64_t wall_ms = 0;
    uint64_t output_bytes = 0;
    uint64_t discarded_bytes = 0;  // of them: beyond the limit
};

// The weightier of two causes, in the order of the end reasons.
StopCause weightier(StopCause a, StopCause b);

// Whether the code failed, or its interpreter died.
bool failed(const RunFacts& facts);

// All of the end but its artifacts.
RunEnd outcome_of(const RunFacts& facts);

}  // namespace cloister::agent
