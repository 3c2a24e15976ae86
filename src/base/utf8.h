// UTF-8: checking what came from outside, and cutting a byte stream at character borders.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cloister {

// Whether `bytes` is well-formed UTF-8 (no surrogates, nothing overlong, up to U+10FFFF).
bool is_utf8(std::string_view bytes);
// The same text with each ill-formed sequence replaced by U+FFFD.
std::string to_utf8(std::string_view bytes);
// How many bytes at the end of `bytes` begin a character that is not complete yet (0..3).
size_t incomplete_tail(std::string_view bytes);

}  // namespace cloister
