// The platform deny set: what no sandbox may reach, whatever its policy says, unless the operator
// opens it (`platform_allow` in cloister.toml). The addresses of the host itself belong to it, too;
// they are read from the host.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace cloister::limits {

struct DeniedNetwork {
    std::string_view network;
    std::string_view what;
};

inline constexpr auto kPlatformDeniedNetworks = std::to_array<DeniedNetwork>({
    {"0.0.0.0/8", "this host"},
    {"10.0.0.0/8", "private"},
    {"100.64.0.0/10", "shared by carriers; 100.100.100.200 is a cloud's metadata"},
    {"127.0.0.0/8", "loopback"},
    {"168.63.129.16", "a cloud's host agent"},
    {"169.254.0.0/16", "link-local; 169.254.169.254 is the metadata of most clouds"},
    {"172.16.0.0/12", "private"},
    {"192.0.0.0/24", "protocol assignments; 192.0.0.192 is a cloud's metadata"},
    {"192.168.0.0/16", "private"},
    {"224.0.0.0/4", "multicast"},
    {"240.0.0.0/4", "reserved, and broadcast"},
    {"::/128", "this host"},
    {"::1/128", "loopback"},
    {"fc00::/7", "private; fd00:ec2::254 is a cloud's metadata"},
    {"fe80::/10", "link-local"},
    {"fec0::/10", "site-local"},
    {"ff00::/8", "multicast"},
});

// `*.x`: everything below x.
inline constexpr auto kPlatformDeniedNames = std::to_array<std::string_view>({
    "localhost",
    "*.localhost",
    "metadata",
    "metadata.google.internal",
    "*.metadata.google.internal",
    "metadata.goog",
    "*.metadata.goog",
    "instance-data",
    "instance-data.ec2.internal",
    "*.instance-data.ec2.internal",
});

inline constexpr auto kPlatformDeniedPorts = std::to_array<uint16_t>({25});

}  // namespace cloister::limits
