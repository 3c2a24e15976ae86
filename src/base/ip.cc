#include "base/ip.h"

#include <arpa/inet.h>

#include <algorithm>

#include "base/check.h"
#include "base/number.h"

namespace cloister {
namespace {

constexpr std::array<uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr uint8_t kMappedPrefix = 96;

// One part of an IPv4 address: decimal, 0-octal or 0x-hexadecimal, and nothing else.
std::optional<uint64_t> parse_part(std::string_view text) {
    unsigned base = 10;
    if (text.starts_with("0x") || text.starts_with("0X")) {
        base = 16;
        text.remove_prefix(2);
    } else if (text.size() > 1 && text.front() == '0') {
        base = 8;
        text.remove_prefix(1);
    }
    constexpr size_t kDigitsMax = 16;
    if (text.empty() || text.size() > kDigitsMax) return std::nullopt;
    uint64_t value = 0;
    for (const char c : text) {
        const auto lower = static_cast<unsigned char>(c | 0x20);
        unsigned digit = base;
        if (c >= '0' && c <= '9') digit = static_cast<unsigned>(c - '0');
        if (lower >= 'a' && lower <= 'f') digit = lower - 'a' + 10u;
        if (digit >= base) return std::nullopt;
        value = value * base + digit;
    }
    return value;
}

std::optional<IpAddress> from_parts(const std::vector<uint64_t>& parts) {
    uint64_t value = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
        if (parts[i] > 0xff) return std::nullopt;
        value |= parts[i] << (24 - 8 * i);
    }
    const uint64_t last_max = 0xffffffffu >> (8 * (parts.size() - 1));
    if (parts.back() > last_max) return std::nullopt;
    value |= parts.back();
    return IpAddress::v4(static_cast<uint8_t>(value >> 24), static_cast<uint8_t>(value >> 16),
                         static_cast<uint8_t>(value >> 8), static_cast<uint8_t>(value));
}

std::optional<IpAddress> parse_v4(std::string_view text) {
    std::vector<uint64_t> parts;
    for (;;) {
        const size_t dot = text.find('.');
        const auto part = parse_part(text.substr(0, dot));
        if (!part || parts.size() == 4) return std::nullopt;
        parts.push_back(*part);
        if (dot == std::string_view::npos) return from_parts(parts);
        text.remove_prefix(dot + 1);
    }
}

std::optional<IpAddress> parse_v6(std::string_view text) {
    IpAddress out;
    const std::string copy(text);
    if (copy.size() != text.size() || copy.find('\0') != std::string::npos) return std::nullopt;
    if (::inet_pton(AF_INET6, copy.c_str(), out.bytes.data()) != 1) return std::nullopt;
    return out;
}

IpAddress v4_at(const IpAddress& address, size_t at, uint8_t flip = 0) {
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(address.bytes[at + i] ^ flip); };
    return IpAddress::v4(byte(0), byte(1), byte(2), byte(3));
}

bool is_isatap(const IpAddress& address) {
    const auto& b = address.bytes;
    return (b[8] == 0 || b[8] == 2) && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe;
}

}  // namespace

IpAddress IpAddress::v4(uint8_t a, uint8_t b, uint8_t c, uint8_t d) {
    IpAddress out;
    std::ranges::copy(kMapped, out.bytes.begin());
    out.bytes[12] = a;
    out.bytes[13] = b;
    out.bytes[14] = c;
    out.bytes[15] = d;
    return out;
}

bool IpAddress::is_v4() const {
    return std::equal(kMapped.begin(), kMapped.end(), bytes.begin());
}

std::string IpAddress::text() const {
    std::array<char, INET6_ADDRSTRLEN> out{};
    const int family = is_v4() ? AF_INET : AF_INET6;
    const void* from = is_v4() ? &bytes[12] : bytes.data();
    CLOISTER_CHECK(::inet_ntop(family, from, out.data(), out.size()) != nullptr);
    return out.data();
}

std::string Endpoint::text() const {
    const std::string host = address.is_v4() ? address.text() : "[" + address.text() + "]";
    return host + ":" + std::to_string(port);
}

std::optional<IpAddress> parse_address(std::string_view text) {
    if (text.starts_with('[') && text.ends_with(']')) {
        return parse_v6(text.substr(1, text.size() - 2));
    }
    if (text.find(':') != std::string_view::npos) return parse_v6(text);
    return parse_v4(text);
}

std::vector<IpAddress> embedded_v4(const IpAddress& address) {
    static const Cidr kNat64 = cidr("64:ff9b::/96"), kLocalNat64 = cidr("64:ff9b:1::/48"),
                      k6To4 = cidr("2002::/16"), kTeredo = cidr("2001::/32"),
                      kCompatible = cidr("::/96");
    if (address.is_v4()) return {};
    if (kNat64.holds(address) || kLocalNat64.holds(address)) return {v4_at(address, 12)};
    if (k6To4.holds(address)) return {v4_at(address, 2)};
    if (kTeredo.holds(address)) return {v4_at(address, 4), v4_at(address, 12, 0xff)};
    if (kCompatible.holds(address)) return {v4_at(address, 12)};
    if (is_isatap(address)) return {v4_at(address, 12)};
    return {};
}

IpAddress masked(const IpAddress& address, uint8_t prefix) {
    IpAddress out;
    const size_t whole = prefix / 8;
    std::copy_n(address.bytes.begin(), whole, out.bytes.begin());
    if (prefix % 8 != 0) {
        out.bytes[whole] = static_cast<uint8_t>(address.bytes[whole] & (0xff00 >> (prefix % 8)));
    }
    return out;
}

bool Cidr::holds(const IpAddress& address) const {
    return address.is_v4() == is_v4() && masked(address, prefix) == network;
}

bool Cidr::overlaps(const Cidr& other) const {
    if (is_v4() != other.is_v4()) return false;
    const uint8_t shorter = std::min(prefix, other.prefix);
    return masked(network, shorter) == masked(other.network, shorter);
}

std::string Cidr::text() const {
    if (prefix == 128) return network.text();
    const int shown = is_v4() ? prefix - kMappedPrefix : prefix;
    return network.text() + "/" + std::to_string(shown);
}

std::optional<Cidr> parse_cidr(std::string_view text) {
    const size_t slash = text.find('/');
    const auto address = parse_address(text.substr(0, slash));
    if (!address) return std::nullopt;
    if (slash == std::string_view::npos) return Cidr{.network = *address};
    const auto length = whole_number<unsigned>(text.substr(slash + 1));
    // "::ffff:10.0.0.0/104" counts in 128 bits, "10.0.0.0/8" in 32.
    const bool short_form = text.substr(0, slash).find(':') == std::string_view::npos;
    const unsigned most = short_form ? 32 : 128;
    if (!length || *length > most) return std::nullopt;
    Cidr out{.network = *address,
             .prefix = static_cast<uint8_t>(*length + (short_form ? kMappedPrefix : 0))};
    if (address->is_v4() && out.prefix < kMappedPrefix) return std::nullopt;
    if (masked(*address, out.prefix) != *address) return std::nullopt;
    return out;
}

Cidr cidr(std::string_view text) {
    const auto parsed = parse_cidr(text);
    CLOISTER_CHECK(parsed.has_value());
    return *parsed;
}

}  // namespace cloister
