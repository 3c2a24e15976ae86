#include "programs/cli/restart_budget.h"

namespace cloister::cli {
namespace {

constexpr int64_t kWindowMs = 60'000;
constexpr size_t kRestartsMax = 5;
constexpr int64_t kFirstPauseMs = 50;

}  // namespace

std::optional<int64_t> RestartBudget::next(int64_t now_ms) {
    while (!restarts_.empty() && now_ms - restarts_.front() >= kWindowMs) restarts_.pop_front();
    if (restarts_.size() >= kRestartsMax) return std::nullopt;
    const int64_t pause = kFirstPauseMs
                          << (2 * restarts_.size());  // 50 ms, 200 ms, 800 ms, 3.2 s, 12.8 s
    restarts_.push_back(now_ms);
    return pause;
}

}  // namespace cloister::cli
