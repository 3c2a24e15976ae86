#include "faces/rest/byte_range.h"

#include <algorithm>

#include "base/number.h"

namespace cloister::rest {
std::optional<ByteRange> parse_range(std::string_view header) {
    constexpr std::string_view kUnit = "bytes=";
    const size_t dash = header.find('-');
    if (!header.starts_with(kUnit) || dash == std::string_view::npos) return std::nullopt;
    const std::string_view first = header.substr(kUnit.size(), dash - kUnit.size());
    const std::string_view last = header.substr(dash + 1);
    const ByteRange range{.first = whole_number<uint64_t>(first),
                          .last = whole_number<uint64_t>(last)};
    const bool good = (range.first || first.empty()) && (range.last || last.empty());
    if (!good || (!range.first && !range.last)) return std::nullopt;
    if (range.first && range.last && *range.first > *range.last) return std::nullopt;
    return range;
}

std::optional<Slice> slice_of(const ByteRange& range, uint64_t size) {
    if (!range.first) {
        const uint64_t length = std::min(*range.last, size);
        return length == 0 ? std::nullopt : std::optional(Slice{size - length, length});
    }
    if (*range.first >= size) return std::nullopt;
    const uint64_t last = std::min(range.last.value_or(size - 1), size - 1);
    return Slice{*range.first, last - *range.first + 1};
}

}  // namespace cloister::rest
