#include "base/json_text.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <iterator>

#include "base/utf8.h"

namespace cloister {
namespace {

constexpr uint64_t kEach = 0x0101010101010101;  // times a byte: that byte eight times
constexpr uint64_t kHighBits = 0x80 * kEach;

// Whether one of eight bytes is below 0x20, a quote or a backslash. (x - n) & ~x has the high bit
// of a byte below n, and of none if there is no such byte.
bool has_special(uint64_t eight) {
    const uint64_t quote = eight ^ ('"' * kEach), backslash = eight ^ ('\\' * kEach);
    const uint64_t low = (eight - 0x20 * kEach) & ~eight;
    return ((low | ((quote - kEach) & ~quote) | ((backslash - kEach) & ~backslash)) & kHighBits) !=
           0;
}

bool is_special(char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\';
}

// Output is megabytes of mostly plain text: eight bytes at a time.
size_t plain_prefix(std::string_view text) {
    size_t at = 0;
    for (; at + 8 <= text.size(); at += 8) {
        uint64_t eight = 0;
        std::memcpy(&eight, text.data() + at, 8);
        if (has_special(eight)) break;
    }
    while (at < text.size() && !is_special(text[at])) ++at;
    return at;
}

void append_special(std::string& out, char c) {
    switch (c) {
        case '"':
            out += "\\\"";
            return;
        case '\\':
            out += "\\\\";
            return;
        case '\n':
            out += "\\n";
            return;
        case '\r':
            out += "\\r";
            return;
        case '\t':
            out += "\\t";
            return;
        default:
            fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
    }
}

}  // namespace

std::string json_quote(std::string_view text) {
    std::string out;
    append_json_quoted(out, is_utf8(text) ? std::string(text) : to_utf8(text));
    return out;
}

void append_json_quoted(std::string& out, std::string_view text) {
    out.reserve(out.size() + text.size() + text.size() / 16 + 2);
    out += '"';
    for (;;) {
        const size_t plain = plain_prefix(text);
        out += text.substr(0, plain);
        text.remove_prefix(plain);
        if (text.empty()) break;
        append_special(out, text.front());
        text.remove_prefix(1);
    }
    out += '"';
}

}  // namespace cloister
