#include "programs/agent/outcome.h"

#include <fmt/format.h>

#include <algorithm>
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
        case StopCause::None:
            break;
    }
    return EndReason::Ok;
}

bool failed(const RunFacts& facts) {
    return facts.died || facts.reply_exit_code.value_or(1) != 0;
}

// The enum stands in the order of precedence, so the reason is the least of those that apply.
EndReason reason_of(const RunFacts& facts) {
    EndReason reason = reason_of(facts.stopped);
    const auto applies = [&](EndReason other) { reason = std::min(reason, other); };
    if (facts.died) applies(EndReason::KernelDied);
    if (failed(facts)) {
        applies(EndReason::Error);
        if (facts.used.oom_kills > 0) applies(EndReason::Oom);
        if (facts.used.pids_max_hits > 0) applies(EndReason::PidsLimit);
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

std::string message_of(EndReason reason, const RunFacts& facts) {
    switch (reason) {
        case EndReason::Oom:
            return "the sandbox's memory limit killed it: use less memory, or make a sandbox with "
                   "more";
        case EndReason::Timeout:
            return fmt::format("it ran longer than {} ms", facts.timeout_ms);
        case EndReason::Cancelled:
            return "it was cancelled";
        case EndReason::Interrupted:
            return "it was interrupted";
        case EndReason::OutputLimit:
            return fmt::format("it wrote more than {} bytes", facts.output_max);
        case EndReason::KernelDied:
            return death_of(facts);
        case EndReason::PidsLimit:
            return "the sandbox's limit on processes refused a fork";
        case EndReason::Error:
            return fmt::format("it ended with code {}", facts.reply_exit_code.value_or(1));
        default:
            return {};
    }
}

std::vector<std::string> limits_hit(const RunFacts& facts) {
    std::vector<std::string> hit;
    if (facts.used.oom_kills > 0) hit.emplace_back("memory");
    if (facts.used.pids_max_hits > 0) hit.emplace_back("pids");
    if (facts.stopped == StopCause::Timeout) hit.emplace_back("timeout");
    if (facts.output_exceeded) hit.emplace_back("output");
    return hit;
}

}  // namespace

StopCause weightier(StopCause a, StopCause b) {
    return reason_of(a) < reason_of(b) ? a : b;
}

RunEnd outcome_of(const RunFacts& facts) {
    const EndReason reason = reason_of(facts);
    return {.reason = reason,
            .exit_code = exit_code_of(facts),
            .message = message_of(reason, facts),
            .state_lost = facts.died,
            .limits_hit = limits_hit(facts),
            .usage = {.wall_ms = facts.wall_ms,
                      .cpu_ms = facts.used.cpu_ms,
                      .memory_peak_bytes = facts.used.memory_peak_bytes,
                      .output_bytes = facts.output_bytes},
            .artifacts = {},
            .artifacts_left_out = 0};
}

}  // namespace cloister::agent
