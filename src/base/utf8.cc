#include "base/utf8.h"

#include <cstdint>
#include <cstring>

namespace cloister {
namespace {

struct Step {
    size_t length;  // bytes of the character, or of the ill-formed sequence (at least 1)
    bool valid;
    bool cut;  // ill-formed only because the bytes end
};

struct Lead {
    size_t length;
    unsigned char second_low, second_high;
};

// The length that a lead byte announces, and the range of the byte after it (Unicode 15, table
// 3-7).
Lead lead_of(unsigned char byte) {
    if (byte < 0x80) return {1, 0, 0};
    if (byte >= 0xC2 && byte <= 0xDF) return {2, 0x80, 0xBF};
    if (byte == 0xE0) return {3, 0xA0, 0xBF};
    if (byte == 0xED) return {3, 0x80, 0x9F};
    if (byte >= 0xE1 && byte <= 0xEF) return {3, 0x80, 0xBF};
    if (byte == 0xF0) return {4, 0x90, 0xBF};
    if (byte >= 0xF1 && byte <= 0xF3) return {4, 0x80, 0xBF};
    if (byte == 0xF4) return {4, 0x80, 0x8F};
    return {0, 0, 0};
}

Step next(std::string_view bytes) {
    const Lead lead = lead_of(static_cast<unsigned char>(bytes[0]));
    if (lead.length == 0) return {1, false, false};
    for (size_t i = 1; i < lead.length; ++i) {
        if (i == bytes.size()) return {i, false, true};
        const auto byte = static_cast<unsigned char>(bytes[i]);
        const unsigned char low = i == 1 ? lead.second_low : 0x80;
        const unsigned char high = i == 1 ? lead.second_high : 0xBF;
        if (byte < low || byte > high) return {i, false, false};
    }
    return {lead.length, true, false};
}

// Of a whole number of eight bytes: most text is nothing else.
size_t ascii_prefix(std::string_view bytes) {
    size_t at = 0;
    for (; at + 8 <= bytes.size(); at += 8) {
        uint64_t eight = 0;
        std::memcpy(&eight, bytes.data() + at, 8);
        if ((eight & 0x8080808080808080) != 0) break;
    }
    return at;
}

}  // namespace

bool is_utf8(std::string_view bytes) {
    for (;;) {
        bytes.remove_prefix(ascii_prefix(bytes));
        if (bytes.empty()) break;
        const Step step = next(bytes);
        if (!step.valid) return false;
        bytes.remove_prefix(step.length);
    }
    return true;
}

std::string to_utf8(std::string_view bytes) {
    std::string out;
    out.reserve(bytes.size());
    while (!bytes.empty()) {
        const Step step = next(bytes);
        out += step.valid ? bytes.substr(0, step.length) : std::string_view("\xEF\xBF\xBD");
        bytes.remove_prefix(step.length);
    }
    return out;
}

size_t incomplete_tail(std::string_view bytes) {
    for (size_t length = 1; length <= 3 && length <= bytes.size(); ++length) {
        const Step step = next(bytes.substr(bytes.size() - length));
        if (step.cut && step.length == length) return length;
    }
    return 0;
}

}  // namespace cloister
