// RunEnd: how a run ended. A value, never an Error: every run has exactly one, after all of its
// output.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cloister {

// In the order of precedence (design §1): if several apply, the first of these is the reason.
enum class EndReason {
    SandboxLost,  // the sandbox went away under the run
    Oom,          // the kernel's memory limit killed a process of the sandbox
    Timeout,      // the run's time was over
    Cancelled,    // the server stopped it (sandbox deleted, service stopping)
    Interrupted,  // the caller asked to stop it
    OutputLimit,  // more output than the run may have
    KernelDied,   // the interpreter ended by itself
    CpuLimit,
    PidsLimit,
    DiskFull,
    Error,  // the code raised, or ended with a code other than 0
    Ok,
};

std::string_view to_string(EndReason reason);  // "sandbox_lost", "oom", ...
std::optional<EndReason> end_reason_from(std::string_view word);

// Whether the same run may do better without a change: its end was not the code's own doing, and
// nobody interrupted it.
bool is_retryable(EndReason reason);

struct RunUsage {
    int64_t wall_ms = 0;
    int64_t cpu_ms = 0;              // user and system time of the whole sandbox during the run
    uint64_t memory_peak_bytes = 0;  // of the whole sandbox during the run
    uint64_t output_bytes = 0;       // stdout, stderr and displays
    uint64_t discarded_bytes = 0;    // of them: beyond output_max_bytes, kept nowhere
};

// The limit that was the reason: the name of its field in a request, and its value.
struct LimitFired {
    std::string name;  // "timeout_ms", "memory_max_bytes", …
    uint64_t value = 0;
};

struct Artifact {
    std::string path;  // absolute, inside the sandbox
    uint64_t size = 0;
    int64_t modified_ms = 0;  // since the epoch
    bool operator==(const Artifact&) const = default;
};

struct RunEnd {
    EndReason reason = EndReason::SandboxLost;
    std::optional<int>
        exit_code;  // the program's own: 0 ok, 1 exception, N of sys.exit(N); 128+S by signal S
    std::string message;      // what happened and what can be done, for a person; empty if ok
    bool state_lost = false;  // the context's variables are gone
    std::optional<LimitFired> limit;  // of a reason that is a limit
    // Also of a run that finished: "memory", "pids", "timeout", "output", "cpu_time", "disk".
    std::vector<std::string> limits_hit;
    RunUsage usage;
    std::vector<Artifact> artifacts;
    uint64_t artifacts_left_out = 0;  // more files changed than are listed
};

}  // namespace cloister
