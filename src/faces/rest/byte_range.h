// The `Range` header (RFC 9110 §14): one range of bytes. Others are ignored, as the RFC allows: the
// whole is sent.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cloister::rest {

// "bytes=5-9": both; "bytes=5-": no last; "bytes=-5": no first, the last five.
struct ByteRange {
    std::optional<uint64_t> first, last;
};
std::optional<ByteRange> parse_range(std::string_view header);

struct Slice {
    uint64_t offset = 0;
    uint64_t length = 0;
};
// What it is of `size` bytes; nothing if it has none of them.
std::optional<Slice> slice_of(const ByteRange& range, uint64_t size);

}  // namespace cloister::rest
