#include "base/ids.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/check.h"

namespace cloister {
namespace {

constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr size_t kLetters = 26;

constexpr std::string_view kKeyPrefix = "e2b_";
constexpr size_t kKeyHexDigits = 40;

// A character of the first `size` of the alphabet, without the bias that a plain modulo has.
char random_character(size_t size) {
    const size_t bound = 256 - 256 % size;
    unsigned char byte = 0;
    do {
        random_bytes({&byte, 1});
    } while (byte >= bound);
    return kAlphabet[byte % size];
}

}  // namespace

void random_bytes(std::span<unsigned char> out) {
    // /dev/urandom by stdio: this room makes no system calls of its own.
    static std::FILE* source = std::fopen("/dev/urandom", "rbe");
    CLOISTER_CHECK(source != nullptr);
    CLOISTER_CHECK(std::fread(out.data(), 1, out.size(), source) == out.size());
}

std::string new_id() {
    std::string id(1, random_character(kLetters));
    while (id.size() < kIdLength) id += random_character(kAlphabet.size());
    return id;
}

bool is_id(std::string_view text) {
    if (text.size() != kIdLength || text[0] < 'a' || text[0] > 'z') return false;
    return std::ranges::all_of(text, [](char c) { return kAlphabet.contains(c); });
}

std::string new_api_key() {
    std::array<unsigned char, kKeyHexDigits / 2> bytes{};
    random_bytes(bytes);
    std::string key(kKeyPrefix);
    for (unsigned char byte : bytes) {
        key += "0123456789abcdef"[byte >> 4];
        key += "0123456789abcdef"[byte & 15];
    }
    return key;
}

bool is_api_key(std::string_view text) {
    if (text.size() != kKeyPrefix.size() + kKeyHexDigits || !text.starts_with(kKeyPrefix)) {
        return false;
    }
    return text.substr(kKeyPrefix.size()).find_first_not_of("0123456789abcdef") ==
           std::string_view::npos;
}

}  // namespace cloister
