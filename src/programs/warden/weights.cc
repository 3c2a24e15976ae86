#include "programs/warden/weights.h"

#include "base/limits.h"

namespace cloister::warden {
namespace {

// Resting is using less than this part of one CPU.
constexpr uint64_t kRestingPart = 20;

}  // namespace

void BusyMeter::look(int64_t now_ms, uint64_t cpu_ms) {
    if (!looks_.empty()) {
        const Look& last = looks_.back();
        const auto passed = static_cast<uint64_t>(now_ms - last.at_ms);
        active_ = (cpu_ms - last.cpu_ms) * kRestingPart > passed;
    }
    if (active_ || looks_.empty()) resting_since_ms_ = now_ms;
    looks_.push_back({.at_ms = now_ms, .cpu_ms = cpu_ms});
    // The newest look that is a whole window old stays, to count from.
    while (looks_.size() > 1 && looks_[1].at_ms <= now_ms - limits::kBusyWindowMs) {
        looks_.pop_front();
    }
    const bool rested = now_ms - resting_since_ms_ >= limits::kRestMs;
    // What was used before a long pause between looks was not used in the window.
    const bool recent = now_ms - looks_.front().at_ms <= 2 * limits::kBusyWindowMs;
    if (recent && cpu_ms - looks_.front().cpu_ms > limits::kBusyCpuMs) busy_ = true;
    if (rested) busy_ = false;
}

void NestBalance::add(const BusyMeter& sandbox) {
    busy_ = busy_ || sandbox.busy();
    others_active_ = others_active_ || (sandbox.active() && !sandbox.busy());
}

}  // namespace cloister::warden
