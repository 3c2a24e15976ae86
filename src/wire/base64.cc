#include "wire/base64.h"

#include <cstdint>

namespace cloister {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t padding_of(std::string_view text) {
    if (text.ends_with("==")) return 2;
    return text.ends_with('=') ? 1 : 0;
}

}  // namespace

std::string base64_encode(std::string_view bytes) {
    std::string out;
    out.reserve((bytes.size() + 2) / 3 * 4);
    uint32_t bits = 0;
    int held = 0;  // bits that are not in `out` yet
    for (const char c : bytes) {
        bits = (bits << 8 | static_cast<unsigned char>(c)) & 0xFFFF;
        held += 8;
        for (; held >= 6; held -= 6) out += kAlphabet[bits >> (held - 6) & 0x3F];
    }
    if (held > 0) out += kAlphabet[bits << (6 - held) & 0x3F];
    while (out.size() % 4 != 0) out += '=';
    return out;
}

std::optional<std::string> base64_decode(std::string_view text) {
    if (text.size() % 4 != 0) return std::nullopt;
    text.remove_suffix(padding_of(text));
    std::string out;
    out.reserve(text.size() / 4 * 3 + 2);
    uint32_t bits = 0;
    int held = 0;  // bits that are not in `out` yet
    for (const char c : text) {
        const size_t value = kAlphabet.find(c);
        if (value == std::string_view::npos) return std::nullopt;
        bits = (bits << 6 | static_cast<uint32_t>(value)) & 0xFFFF;
        held += 6;
        if (held < 8) continue;
        held -= 8;
        out += static_cast<char>(bits >> held & 0xFF);
    }
    const bool clean = (bits & ((1U << held) - 1)) == 0 && held < 6;
    return clean ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace cloister
