#include "base/limit_table.h"

#include <array>

#include "base/limits.h"
#include "base/process_limits.h"

namespace cloister {
namespace {

using enum LimitUnit;

constexpr std::array kTable = {
    // A request
    LimitRow{"json_body", limits::kJsonBodyMax, Bytes, "JSON body of a request", "413"},
    LimitRow{"json_depth", limits::kJsonDepthMax, Count, "nesting of a JSON body", "400"},
    LimitRow{"upload", limits::kUploadMax, Bytes, "an uploaded file (and the sandbox's disk)",
             "413, or `disk_full`"},
    LimitRow{"stdin_call", limits::kStdinCallMax, Bytes, "one call that sends stdin", "413"},
    LimitRow{"connections", limits::kConnectionsMax, Count, "open connections of the service",
             "a new one waits"},
    // A sandbox
    LimitRow{"sandboxes", limits::kSandboxesMax, Count, "live sandboxes of a host", "429"},
    LimitRow{"cpu_default", limits::kSandboxCpuDefault, Count, "CPUs of a sandbox by default",
             "it runs slower"},
    LimitRow{"cpu_max", limits::kSandboxCpuMax, Count, "CPUs of a sandbox at most", "422"},
    LimitRow{"memory_default", limits::kSandboxMemoryDefault, Bytes,
             "memory of a sandbox by default", "all of its processes end, the run ends `oom`"},
    LimitRow{"memory_min", limits::kSandboxMemoryMin, Bytes, "memory of a sandbox at least", "422"},
    LimitRow{"memory_max", limits::kSandboxMemoryMax, Bytes, "memory of a sandbox at most", "422"},
    LimitRow{"disk_default", limits::kSandboxDiskDefault, Bytes, "disk of a sandbox by default",
             "EDQUOT, the run ends `disk_full`"},
    LimitRow{"disk_min", limits::kSandboxDiskMin, Bytes, "disk of a sandbox at least", "422"},
    LimitRow{"disk_bytes_per_second", limits::kSandboxDiskBytesPerSecond, BytesPerSecond,
             "read from a sandbox's disk, and as much written (cgroup v1: direct I/O only)",
             "it waits"},
    LimitRow{"disk_iops", limits::kSandboxDiskIops, PerSecond,
             "reads of a sandbox's disk, and as many writes (cgroup v1: direct I/O only)",
             "it waits"},
    LimitRow{"pids", limits::kSandboxPidsDefault, Count, "processes and threads of a sandbox",
             "fork fails, the run ends `pids_limit`"},
    LimitRow{"idle_default", limits::kSandboxIdleDefaultMs, Milliseconds,
             "a sandbox without a run, by default", "it is killed"},
    LimitRow{"idle_max", limits::kSandboxIdleMaxMs, Milliseconds,
             "a sandbox without a run, at most", "422"},
    LimitRow{"contexts", limits::kContextsMax, Count, "contexts of a sandbox", "429"},
    LimitRow{"spool", limits::kSpoolBytesMax, Bytes, "the whole output of a sandbox's runs on disk",
             "the oldest goes"},
    LimitRow{"network_entries", limits::kNetworkEntriesMax, Count,
             "entries of `allow_out`, and of `deny_out`", "422"},
    LimitRow{"network_connections", limits::kNetworkConnectionsMax, Count,
             "connections out of a sandbox at a time", "a new one is reset, and in the log"},
    LimitRow{"network_log", limits::kNetworkLogMax, Count, "lines of a sandbox's egress log",
             "the oldest goes"},
    // A run
    LimitRow{"code", limits::kCodeMax, Bytes, "`code`", "422"},
    LimitRow{"argv", limits::kArgvMax, Count, "arguments of a run", "422"},
    LimitRow{"env_entries", limits::kEnvEntriesMax, Count, "variables of a run or sandbox", "422"},
    LimitRow{"env_bytes", limits::kEnvBytesMax, Bytes, "names and values of these together", "422"},
    LimitRow{"files", limits::kInlineFilesMax, Count, "files inside a run request", "422"},
    LimitRow{"timeout_ms_default", limits::kRunTimeoutDefaultMs, Milliseconds,
             "a run's time by default", "the run ends `timeout`"},
    LimitRow{"timeout_ms_max", limits::kRunTimeoutMaxMs, Milliseconds, "a run's time at most",
             "422"},
    LimitRow{"timeout_grace", limits::kInterruptGraceMs, Milliseconds,
             "from the interrupt at the timeout to the kill", "what the run started is killed"},
    LimitRow{"cpu_time_ms_min", limits::kRunCpuTimeMinMs, Milliseconds,
             "`cpu_time_ms` of a run at least (by default there is no limit)", "422"},
    LimitRow{"memory_max_bytes_min", limits::kRunMemoryMin, Bytes,
             "`memory_max_bytes` of a run at least", "422"},
    LimitRow{"pids_min", limits::kRunPidsMin, Count, "`pids` of a run at least", "422"},
    LimitRow{"output_max_bytes", limits::kOutputMaxDefault, Bytes,
             "output of a run: stdout, stderr and displays", "the run ends `output_limit`"},
    LimitRow{"inline_output", limits::kInlineOutputMax, Bytes,
             "output of a stream in a JSON answer by default",
             "head and tail, with the exact count of what is left out"},
    LimitRow{"inline_bytes_min", limits::kInlineOutputLeast, Bytes,
             "`inline_bytes` of a run at least", "422"},
    LimitRow{"inline_bytes_max", limits::kInlineOutputLargest, Bytes,
             "`inline_bytes` of a run at most", "422"},
    LimitRow{"outputs_kept", limits::kOutputsKeptMax, Count,
             "ended runs of a sandbox whose whole output can be read", "the oldest goes"},
    LimitRow{"heartbeat", limits::kHeartbeatMs, Milliseconds,
             "between two signs of life on a stream of events on which nothing happens",
             "who hears nothing for longer connects again"},
    LimitRow{"display", limits::kDisplayMax, Bytes, "one display", "a text in its place says so"},
    LimitRow{"picture", limits::kPictureMax, Bytes, "one picture in a display",
             "a text in its place says so"},
    LimitRow{"events", limits::kRunEventsMax, Bytes,
             "events of a run kept for a reader that comes back",
             "a `dropped` event says how many"},
    LimitRow{"queue", limits::kRunQueueMax, Count, "runs that wait for one context", "429"},
    LimitRow{"artifacts", limits::kArtifactsMax, Count, "files listed as artifacts of a run",
             "`artifacts_left_out` counts the rest"},
    LimitRow{"artifact_bytes", limits::kArtifactKeepBytes, Bytes,
             "artifacts kept of a one-call run", "404"},
    LimitRow{"artifact_keep", limits::kArtifactKeepMs, Milliseconds, "how long those are kept",
             "404"},
    LimitRow{"run_record_keep", limits::kRunRecordKeepMs, Milliseconds, "records of ended runs",
             "404"},
    // Processes and ports
    LimitRow{"processes", limits::kProcessesMax, Count,
             "processes of a sandbox that were started through the API and run", "429"},
    LimitRow{"processes_kept", limits::kProcessesKept, Count,
             "ended processes of a sandbox that can be read", "the oldest goes"},
    LimitRow{"process_output", limits::kProcessOutputKept, Bytes,
             "kept of what one process wrote, the newest",
             "a `dropped` event says how much has gone"},
    LimitRow{"process_stdin", limits::kStdinCallMax, Bytes, "`stdin` of a process, and one call",
             "422, 413"},
    LimitRow{"terminal_size", static_cast<uint64_t>(limits::kTerminalSizeMax), Count,
             "columns of a terminal, and rows", "422"},
    LimitRow{"screen_replay", limits::kScreenReplay, Bytes,
             "of a terminal's output, sent with `screen`", "what is older is left out"},
    LimitRow{"port_connections", limits::kPortConnectionsMax, Count,
             "connections to ports of one sandbox at the same time", "429"},
    LimitRow{"ports_published", limits::kPortsPublishedMax, Count, "published ports of a sandbox",
             "429"},
    // Keys
    LimitRow{"keys", limits::kKeysMax, Count, "API keys of a project", "429"},
};

// "16 MiB", "300 s", "24 h": the largest unit that leaves a whole number.
std::string in_units(uint64_t value, std::span<const std::pair<uint64_t, std::string_view>> units) {
    for (const auto& [factor, name] : units) {
        if (value % factor == 0) return std::to_string(value / factor) + " " + std::string(name);
    }
    return std::to_string(value);
}

std::string for_a_person(const LimitRow& row) {
    static constexpr std::array<std::pair<uint64_t, std::string_view>, 4> kBytes = {
        {{limits::kGiB, "GiB"}, {limits::kMiB, "MiB"}, {limits::kKiB, "KiB"}, {1, "bytes"}}};
    static constexpr std::array<std::pair<uint64_t, std::string_view>, 4> kTimes = {
        {{86'400'000, "days"}, {3'600'000, "h"}, {1000, "s"}, {1, "ms"}}};
    switch (row.unit) {
        case Bytes:
            return in_units(row.value, kBytes);
        case BytesPerSecond:
            return in_units(row.value, kBytes) + " a second";
        case Milliseconds:
            return row.value == 86'400'000 ? "24 h" : in_units(row.value, kTimes);
        case PerSecond:
            return std::to_string(row.value) + " a second";
        case Count:
            break;
    }
    return std::to_string(row.value);
}

constexpr std::string_view kHead = R"(# Limits

This page is made from `src/base/limit_table.cc`, whose numbers are those of `src/base/limits.h`; `GET /v1/limits` answers
the same. What a host can enforce of them, `GET /v1/capabilities` and `cloister doctor` tell. A run may narrow
`timeout_ms`, `cpu_time_ms`, `memory_max_bytes`, `pids` and `output_max_bytes` for its own time.

| name | value | what | beyond it |
|---|---|---|---|
)";

}  // namespace

std::string_view to_string(LimitUnit unit) {
    switch (unit) {
        case Bytes:
            return "bytes";
        case Milliseconds:
            return "ms";
        case BytesPerSecond:
            return "bytes_per_second";
        case PerSecond:
            return "per_second";
        case Count:
            break;
    }
    return "count";
}

std::span<const LimitRow> limit_table() {
    return kTable;
}

std::string limits_page() {
    std::string page(kHead);
    for (const LimitRow& row : kTable) {
        page += "| `" + std::string(row.name) + "` | " + for_a_person(row) + " | " +
                std::string(row.words) + " | " + std::string(row.beyond) + " |\n";
    }
    return page;
}

}  // namespace cloister
