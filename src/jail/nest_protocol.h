// What the warden and the reaper of a nest say to each other over a SOCK_SEQPACKET connection:
// plain data, with descriptors beside it. The reaper keeps no table: it makes what it is told to
// make, and reports who was born and who died.
//
// The reaper has the listener (DATA/run/nests/NEST.sock) and outlives wardens: each new one
// connects, and the newest connection counts. What died while there was none is not reported; the
// new warden looks for who is there after it was greeted.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "os/cgroup.h"
#include "wire/birth.h"

namespace cloister::jail {

// Descriptors that the reaper is born with. Its stderr becomes that of its agents.
inline constexpr int kReaperListener = 3;
inline constexpr int kReaperBaseFilter = 4;  // files of `struct sock_filter`s
inline constexpr int kReaperFinalFilter = 5;
inline constexpr int kReaperLog =
    6;  // read end of the pipe that is its stderr, for the next warden
inline constexpr int kReaperZygoteFilter = 7;  // as the two above
inline constexpr int kReaperForkedFilter = 8;
inline constexpr int kReaperFds = 9;

// What a message of the warden asks for; its first field.
enum class OrderKind : uint32_t { Sandbox = 1, Zygote = 2 };

// Warden → reaper: make this sandbox. The descriptors beside it, in order: those of OrderFd, the
// stat files that record.have names (lowest bit first), then cgroup.procs of the `agent` group and
// of the `user` group, record.procs each.
struct SpawnOrder {
    OrderKind kind = OrderKind::Sandbox;
    uint32_t slot = 0;
    birth::Record record;
};
enum OrderFd : size_t {
    kOrderRoot,
    kOrderRuntime,
    kOrderListener,
    kOrderReady,
    kOrderSpool,
    kOrderFixed
};

inline constexpr size_t kOrderFdsMax = kOrderFixed + birth::kHaveBits + 2 * os::kHierarchiesMax;

// Warden → reaper: start the zygote, if there is none. The descriptors beside it: those of
// ZygoteOrderFd, then cgroup.procs of the `zygote` group, `procs` of them.
struct ZygoteOrder {
    OrderKind kind = OrderKind::Zygote;
    uint32_t procs = 0;
};
enum ZygoteOrderFd : size_t { kZygoteOrderRoot, kZygoteOrderRuntime, kZygoteOrderFixed };

// Reaper → warden. `pid` is the number in the nest. Greeting is the first on each connection and
// carries the read end of the nest's log. Born carries the pidfd of the sandbox's first process and
// comes before the Ended of the same process. The Ended of a pid that was never Born is no sandbox
// of ours: each fork of the zygote leaves one. ZygoteEnded: there is none any more.
struct NestReport {
    enum Kind : uint32_t { Born = 1, Ended = 2, Greeting = 3, ZygoteEnded = 4 };
    uint32_t kind = 0;
    int32_t pid = 0;
    int32_t exit_code = 0;
    int32_t signal = 0;
    std::array<char, 24> sandbox{};  // of Born: its id, zero-terminated
};

}  // namespace cloister::jail
