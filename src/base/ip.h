// IP addresses as values. One canonical form: an IPv4 address is kept in its IPv4-mapped IPv6 form,
// so that "1.2.3.4" and "::ffff:1.2.3.4" are the same address.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cloister {

struct IpAddress {
    std::array<uint8_t, 16> bytes{};

    static IpAddress v4(uint8_t a, uint8_t b, uint8_t c, uint8_t d);
    bool is_v4() const;
    std::string text() const;
    auto operator<=>(const IpAddress&) const = default;
};

struct Endpoint {
    IpAddress address;
    uint16_t port = 0;
    std::string text() const;  // "1.2.3.4:443", "[2001:db8::1]:443"
    auto operator<=>(const Endpoint&) const = default;
};

// An address in any spelling that a C library takes: IPv6 (also in brackets, without a zone), and
// IPv4 with one to four parts, each decimal, octal (0…) or hexadecimal (0x…).
std::optional<IpAddress> parse_address(std::string_view text);

// IPv4 addresses that an IPv6 address stands for to whoever translates or tunnels it (NAT64, 6to4,
// Teredo, ISATAP, IPv4-compatible). They are judged as well as the address itself.
std::vector<IpAddress> embedded_v4(const IpAddress& address);

// A network. `prefix` counts in the 128 bits of the canonical form: 10.0.0.0/8 has 104. A network
// of IPv6 holds no IPv4 address.
struct Cidr {
    IpAddress network;  // the bits behind the prefix are zero
    uint8_t prefix = 128;

    bool is_v4() const { return prefix >= 96 && network.is_v4(); }
    bool holds(const IpAddress& address) const;
    bool overlaps(const Cidr& other) const;
    std::string text() const;  // an address alone has no "/32"
    auto operator<=>(const Cidr&) const = default;
};

// The first `prefix` bits of an address; the others are zero.
IpAddress masked(const IpAddress& address, uint8_t prefix);
// "10.0.0.0/8", "2001:db8::/32", or an address alone; nullopt if it is none, also if bits behind
// the prefix are set.
std::optional<Cidr> parse_cidr(std::string_view text);
// Of constants of ours, which are right.
Cidr cidr(std::string_view text);

}  // namespace cloister
