// The limits that a client or an operator meets, in words: the source of contract/limits.md and of
// GET /v1/limits. The numbers are those of limits.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cloister {

enum class LimitUnit { Bytes, Milliseconds, Count, BytesPerSecond, PerSecond };
std::string_view to_string(LimitUnit unit);  // "bytes", "ms", "count", …

struct LimitRow {
    std::string_view name;  // of the API's field where there is one
    uint64_t value = 0;
    LimitUnit unit = LimitUnit::Count;
    std::string_view words;   // what it limits
    std::string_view beyond;  // what happens there
};

std::span<const LimitRow> limit_table();
// The text of contract/limits.md.
std::string limits_page();

}  // namespace cloister
