// How long a sandbox lives, and what comes next in its life: times in, a verdict out. Pure; the
// sandboxes are watched by Sandboxes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/limits.h"

namespace cloister::engine {

// What happens when a time is over.
enum class AtEnd { Pause, Kill };
std::string_view to_string(AtEnd what);
std::optional<AtEnd> at_end_from(std::string_view word);

// A sandbox that never expires is paused when it was idle for so long.
inline constexpr int64_t kNeverExpiresIdleSeconds = 300;
// So long before its end a sandbox gives a warning, and half the time if there is less.
inline constexpr int64_t kEndWarningMs = 30'000;
// It is not idle while its processes use more than this part of a CPU.
inline constexpr int64_t kIdleCpuPercent = 1;

struct Lifespan {
    // Nothing: it never expires. It is paused after kNeverExpiresIdleSeconds, and goes on with the
    // next call.
    std::optional<int64_t> idle_seconds = limits::kSandboxIdleDefaultMs / 1000;
    AtEnd on_idle = AtEnd::Pause;
    std::optional<int64_t> deadline_ms;  // since the epoch
    AtEnd on_deadline = AtEnd::Kill;

    int64_t idle_limit_ms() const { return idle_seconds.value_or(kNeverExpiresIdleSeconds) * 1000; }
    AtEnd at_idle() const { return idle_seconds ? on_idle : AtEnd::Pause; }
};

enum class LifeLimit { Idle, Deadline, MaxLife };
std::string_view to_string(LifeLimit limit);

// What is known of a sandbox now.
struct LifeFacts {
    Lifespan span;
    int64_t now_ms = 0;      // since the epoch
    int64_t created_ms = 0;  // likewise
    std::optional<int64_t> max_life_ms;
    std::optional<int64_t> idle_ms;  // nothing: it is in use
    bool paused = false;
};

struct NextEnd {
    LifeLimit limit = LifeLimit::Idle;
    AtEnd action = AtEnd::Kill;
    int64_t in_ms = 0;  // 0 or less: now
    // Whether the warning is due.
    bool warn = false;
};
// The end that comes first, if nothing changes; nothing if none does. While a sandbox is paused
// only its longest life runs on.
std::optional<NextEnd> next_end(const LifeFacts& facts);

}  // namespace cloister::engine
