#include "wire/run_end.h"

#include <array>
#include <utility>

namespace cloister {
namespace {

constexpr std::array<std::pair<EndReason, std::string_view>, 12> kWords = {{
    {EndReason::SandboxLost, "sandbox_lost"},
    {EndReason::Oom, "oom"},
    {EndReason::Timeout, "timeout"},
    {EndReason::Cancelled, "cancelled"},
    {EndReason::Interrupted, "interrupted"},
    {EndReason::OutputLimit, "output_limit"},
    {EndReason::KernelDied, "kernel_died"},
    {EndReason::CpuLimit, "cpu_limit"},
    {EndReason::PidsLimit, "pids_limit"},
    {EndReason::DiskFull, "disk_full"},
    {EndReason::Error, "error"},
    {EndReason::Ok, "ok"},
}};

}  // namespace

std::string_view to_string(EndReason reason) {
    for (const auto& [value, word] : kWords) {
        if (value == reason) return word;
    }
    return "sandbox_lost";
}

bool is_retryable(EndReason reason) {
    return reason == EndReason::SandboxLost || reason == EndReason::Cancelled;
}

std::optional<EndReason> end_reason_from(std::string_view word) {
    for (const auto& [value, known] : kWords) {
        if (known == word) return value;
    }
    return std::nullopt;
}

}  // namespace cloister
