// What an agent asks the zygote of its nest for: an interpreter in its sandbox. One SOCK_SEQPACKET
// message: agent → reaper → zygote, plain data with descriptors beside it. There is no answer: all
// else is said on kControl, whose closing without a word is a refusal.
//
//     zygote's child → agent   one byte, with its credentials: here I am, in your namespaces
//     agent → child            one byte: you are in the sandbox's cgroups, go
//     from then on             the messages of contract/agent-protocol.md, `start_request` first
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cloister::forking {

// Descriptors that a zygote is born with. It writes one byte to kRequests when it is ready.
inline constexpr int kRequests = 3;
inline constexpr int kFilter = 4;  // a file of `struct sock_filter`s, for those that it forks

// The descriptors beside an order, in this order.
enum OrderFd : size_t {
    kUserNamespace,
    kMountNamespace,
    kNetNamespace,
    kIpcNamespace,
    kUtsNamespace,
    kCgroupNamespace,
    kTimeNamespace,
    kPidNamespace,
    kControl,
    kStdout,
    kStderr,
    kOrderFds
};
inline constexpr size_t kNamespaces = kControl;

inline constexpr uint32_t kVersion = 1;
inline constexpr size_t kLimits = 16;  // RLIM_NLIMITS

struct ResourceLimit {
    uint64_t soft = 0, hard = 0;
};

struct Order {
    uint32_t version = kVersion;
    uint32_t reserved = 0;
    std::array<ResourceLimit, kLimits> limits{};  // by their numbers
    std::array<uint64_t, 16> cpus{};              // a cpu_set_t
};

}  // namespace cloister::forking
