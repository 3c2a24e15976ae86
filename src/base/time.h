// Time: milliseconds as int64_t, from two clocks that must not be mixed.
#pragma once

#include <cstdint>
#include <string>

namespace cloister {

// Since the epoch; for what outlives the process (database, answers).
int64_t unix_ms();
// From an arbitrary start, never backwards; for deadlines and durations.
int64_t steady_ms();
// "2026-11-29T19:20:10.123Z"
std::string rfc3339(int64_t at_unix_ms);

}  // namespace cloister
