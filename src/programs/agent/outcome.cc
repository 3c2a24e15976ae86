#include "programs/agent/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace cloister::agent {
namespace {

EndReason reason_of(StopCause cause) {
    switch (cause) {
        case StopCause::Timeout:
            return EndReason::Timeout;
        case StopCause::Cancelled:
            return EndReason::Cancelled;
        case StopCause::Interrupted:
            return EndReason::Interrupted;
        case StopCause::OutputLimit:
            return EndReason::OutputLimit;
        case StopCause::CpuLimit:
            return EndReason::CpuLimit;
        case StopCause::None:
            break;
    }
    return EndReason::Ok;
}

// The enum stands in the order of precedence, so the reason is the least of those that apply.
EndReason reason_of(const RunFacts& facts) {
    EndReason reason = reason_of(facts.stopped);
    const auto applies = [&](EndReason other) { reason = std::min(reason, other); };
    // An interpreter that we killed while we stopped its run did not end by itself.
    if (facts.died && facts.stopped == StopCause::None) applies(EndReason::KernelDied);
    if (failed(facts)) {
        applies(EndReason::Error);
        if (facts.used.oom_kills > 0) applies(EndReason::Oom);
        if (facts.used.pids_max_hits > 0) applies(EndReason::PidsLimit);
        if (facts.disk_error != 0) applies(EndReason::DiskFull);
    }
    return reason;
}

std::optional<int> exit_code_of(const RunFacts& facts) {
    if (!facts.died) return facts.reply_exit_code;
    return facts.signal != 0 ? 128 + facts.signal : facts.exit_code;
}

std::string death_of(const RunFacts& facts) {
    if (facts.driver_broke) return "the interpreter broke off its protocol and was ended";
    if (facts.signal == 0) {
        return fmt::format("the interpreter ended by itself with code {}", facts.exit_code);
    }
    return fmt::format("the interpreter was killed by signal {} ({})", facts.signal,
                       ::strsignal(facts.signal));
}

// What happened, and what can be done about it.
std::string story_of(EndReason reason, const RunFacts& facts) {
    const RunLimits& limits = facts.limits;
    switch (reason) {
        case EndReason::Oom:
            return fmt::format(
                "the sandbox's memory, {} bytes, was used up and all of its processes were killed "
                "(files stay): use less memory, or a sandbox with a larger `memory_mb`",
                limits.memory_max);
        case EndReason::Timeout:
            return fmt::format(
                "it ran longer than {} ms and was stopped: give it less to do, or a larger "
                "`timeout_ms`",
                limits.timeout_ms);
        case EndReason::Cancelled:
            return "it was cancelled: run it again if it is still wanted";
        case EndReason::Interrupted:
            return "it was interrupted, as somebody asked: run it again if it is still wanted";
        case EndReason::OutputLimit:
            return fmt::format(
                "it wrote more than {} bytes and was stopped: print less, write to a file, or give "
                "it a larger `output_max_bytes`",
                limits.output_max);
        case EndReason::KernelDied:
            return death_of(facts);
        case EndReason::CpuLimit:
            return fmt::format(
                "it used its {} ms of CPU time and was stopped: give it less to do, or a larger "
                "`cpu_time_ms`",
                limits.cpu_time_ms);
        case EndReason::PidsLimit:
            return fmt::format(
                "the sandbox has at most {} processes and threads, and one more was refused: start "
                "fewer at a time, and end those that are not needed",
                limits.pids_max);
        case EndReason::DiskFull:
            return facts.disk_error == EDQUOT
                       ? fmt::format(
                             "the sandbox's disk, {} bytes, is full: remove files, or make "
                             "a sandbox with a larger `disk_mb`",
                             limits.disk_max)
                       : "there is no room where it wrote to (the disk, or /dev/shm and /run, "
                         "which "
                         "are small and in memory): remove files";
        case EndReason::Error:
            return fmt::format("it ended with code {}: its output says why",
                               facts.reply_exit_code.value_or(1));
        default:
            return {};
    }
}

std::string message_of(EndReason reason, const RunFacts& facts) {
    std::string story = story_of(reason, facts);
    if (facts.died) story += "; the next run begins with a fresh interpreter";
    return story;
}

std::optional<LimitFired> limit_of(EndReason reason, const RunFacts& facts) {
    const RunLimits& limits = facts.limits;
    const auto fired = [](const char* name, auto value) {
        return LimitFired{.name = name, .value = static_cast<uint64_t>(value)};
    };
    switch (reason) {
        case EndReason::Oom:
            return fired("memory_max_bytes", limits.memory_max);
        case EndReason::Timeout:
            return fired("timeout_ms", limits.timeout_ms);
        case EndReason::OutputLimit:
            return fired("output_max_bytes", limits.output_max);
        case EndReason::CpuLimit:
            return fired("cpu_time_ms", limits.cpu_time_ms);
        case EndReason::PidsLimit:
            return fired("pids", limits.pids_max);
        case EndReason::DiskFull:
            if (facts.disk_error == EDQUOT) return fired("disk_bytes", limits.disk_max);
            return std::nullopt;  // which of its disks it was, nobody knows
        default:
            return std::nullopt;
    }
}

std::vector<std::string> limits_hit(const RunFacts& facts) {
    std::vector<std::string> hit;
    if (facts.used.oom_kills > 0) hit.emplace_back("memory");
    if (facts.used.pids_max_hits > 0) hit.emplace_back("pids");
    if (facts.stopped == StopCause::Timeout) hit.emplace_back("timeout");
    if (facts.stopped == StopCause::CpuLimit) hit.emplace_back("cpu_time");
    if (facts.output_exceeded) hit.emplace_back("output");
    if (facts.disk_error != 0) hit.emplace_back("disk");
    return hit;
}

}  // namespace

StopCause weightier(StopCause a, StopCause b) {
    return reason_of(a) < reason_of(b) ? a : b;
}

bool failed(const RunFacts& facts) {
    return facts.died || facts.reply_exit_code.value_or(1) != 0;
}

RunEnd outcome_of(const RunFacts& facts) {
    const EndReason reason = reason_of(facts);
    return {.reason = reason,
            .exit_code = exit_code_of(facts),
            .message = message_of(reason, facts),
            .state_lost = facts.died || facts.reply_state_lost,
            .limit = limit_of(reason, facts),
            .limits_hit = limits_hit(facts),
            .usage = {.wall_ms = facts.wall_ms,
                      .cpu_ms = facts.used.cpu_ms,
                      .memory_peak_bytes = facts.used.memory_peak_bytes,
                      .output_bytes = facts.output_bytes,
                      .discarded_bytes = facts.discarded_bytes},
            .artifacts = {},
            .artifacts_left_out = 0};
}

}  // namespace cloister::agent
