// Numbers in text.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace cloister {

// The number that is the whole of `text`, in decimal; nothing if it is none, or does not fit.
template <class Number>
std::optional<Number> whole_number(std::string_view text) {
    Number number = 0;
    const char* const last = text.data() + text.size();
    const auto [end, failure] = std::from_chars(text.data(), last, number);
    if (failure != std::errc() || end != last) return std::nullopt;
    return number;
}

}  // namespace cloister
