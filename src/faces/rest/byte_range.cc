#include "faces/rest/byte_range.h"

#include <algorithm>
#include <charconv>

namespace cloister::rest {
namespace {

// Nothing for an empty text, too; `good` tells the two apart.
std::optional<uint64_t> number_in(std::string_view text, bool& good) {
    if (text.empty()) return std::nullopt;
    uint64_t number = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    good = good && failure == std::errc() && end == text.data() + text.size();
    return number;
}

}  // namespace

std::optional<ByteRange> parse_range(std::string_view header) {
    constexpr std::string_view kUnit = "bytes=";
    const size_t dash = header.find('-');
    if (!header.starts_with(kUnit) || dash == std::string_view::npos) return std::nullopt;
    bool good = true;
    ByteRange range;
    range.first = number_in(header.substr(kUnit.size(), dash - kUnit.size()), good);
    range.last = number_in(header.substr(dash + 1), good);
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
