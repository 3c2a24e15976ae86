// The requests that cloisterd sends to the warden, and what comes back: plain data over one
// SOCK_SEQPACKET unix socket (DATA/run/warden.sock), one message a datagram.
//
// A JailPlan holds ids, sizes and counts only: no path, no uid, no mount option, no command line,
// no environment. Everything else about a sandbox is derived by the warden. Decoding checks every
// field, so a decoded message is a valid one; whatever does not decode ends the connection.
//
// Encoding: the struct's bytes as they stand (both ends are built together and run on one host),
// after a header that names version, kind and size. Every struct is trivially copyable and without
// padding.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/ids.h"
#include "base/result.h"
#include "wire/templates.h"

namespace cloister::warden {

inline constexpr uint32_t kProtocolVersion = 3;

// An id of base/ids.h, fixed in size.
struct Id {
    std::array<char, kIdLength> text{};
    std::string_view view() const { return {text.data(), text.size()}; }
    static Result<Id> from(std::string_view text);
    auto operator<=>(const Id&) const = default;
};

// What a sandbox is to be. Its nest belongs to (project, template_revision) and the warden's
// runtime.
struct JailPlan {
    Id sandbox;
    Id project;
    Id template_revision;
    uint32_t cpu = 0;                    // whole CPUs
    uint64_t memory_max = 0;             // bytes
    uint64_t disk_max = 0;               // bytes
    uint64_t disk_bytes_per_second = 0;  // read, and as much written; 0: no limit
    uint32_t disk_iops = 0;              // likewise
    uint32_t pids_max = 0;
    uint32_t root_allowed = 0;  // 1: `sudo` starts commands as the sandbox's root
    uint32_t reserved = 0;
};

// --- Requests. `tag` comes back in the reply. ---
struct HelloRequest {
    uint64_t tag = 0;
};
struct CreateRequest {
    uint64_t tag = 0;
    JailPlan plan;
};
// Kills and removes a sandbox with its files. Answered when its processes are gone; an unknown id
// is a success.
struct DestroyRequest {
    uint64_t tag = 0;
    Id sandbox;
    uint32_t reserved = 0;
};
// The sandboxes that the warden has, one ListReply each, then one with last = 1.
struct ListRequest {
    uint64_t tag = 0;
};
struct UsageRequest {
    uint64_t tag = 0;
    Id sandbox;
    uint32_t reserved = 0;
};
// Narrows the limits of a running sandbox, or puts those of its plan back (0). Failed if it uses
// more already, InvalidArgument for more than its plan has.
struct NarrowRequest {
    uint64_t tag = 0;
    uint64_t memory_max = 0;  // bytes
    Id sandbox;
    uint32_t pids_max = 0;
};
// Makes the pool larger: takes the blocks from the host first. `bytes` is the new size.
struct GrowPoolRequest {
    uint64_t tag = 0;
    uint64_t bytes = 0;
};

// How full the pool is.
struct PoolRequest {
    uint64_t tag = 0;
};

// Stops the code of a running sandbox where it is, or lets it go on. Answered at once; then, on a
// host with swap, its memory is written there. Its agent goes on, and answers.
struct FreezeRequest {
    uint64_t tag = 0;
    Id sandbox;
    uint32_t frozen = 0;  // 1: stop, 0: go on
};
// Starts processes in a sandbox that has ended, on the files that it had, after the plan that it
// had. FailedPrecondition if it has not ended; if it fails the files are as they were.
struct ReviveRequest {
    uint64_t tag = 0;
    Id sandbox;
    uint32_t reserved = 0;
};

// Sandboxes of the server's pool, beside limits::kSandboxesMax.
inline constexpr size_t kWarmSandboxesMax = 64;

// A running sandbox's way out of its network namespace: none, TCP and look-ups of names, or UDP as
// well. The reply to it carries the descriptors of PathFd; the way is open while they are.
enum class PathKind : uint32_t { None = 0, Tcp = 1, TcpUdp = 2 };
enum PathFd : size_t {
    kPathLink,   // while it is open connections are redirected
    kPathTcp,    // listener
    kPathNames,  // datagrams to the resolver
    kPathUdp,    // from here on: TcpUdp only
    kPathRawV4,
    kPathRawV6,  // missing where the host has no IPv6
};
struct NetworkRequest {
    uint64_t tag = 0;
    Id sandbox;
    PathKind kind = PathKind::None;
};

// --- Replies and events ---
inline constexpr size_t kMessageBytes = 240;

// The end of a request: status 0, or an ErrorKind + 1 with the reason in words.
struct DoneReply {
    uint64_t tag = 0;
    uint32_t status = 0;
    int32_t os_error = 0;
    std::array<char, kMessageBytes> message{};
};

enum class CgroupMode : uint32_t { None = 0, V1 = 1, Hybrid = 2, V2 = 3 };
enum class Limit : uint32_t {  // bits of `enforced`
    Memory = 1,
    Pids = 2,
    Cpu = 4,
    Disk = 8,
    DiskThroughput = 16,  // bytes and operations a second
    CpuWeight = 32,       // sandboxes that use much CPU give way
};
// Who ends a sandbox's processes when its memory limit is hit.
enum class OomKill : uint32_t { Nobody = 0, Kernel = 1, Watcher = 2 };

enum class Pause : uint32_t {  // bits of `pause`
    Freezes = 1,
    Reclaims = 2,  // there is swap to write the memory of paused sandboxes to
};

struct HelloReply {
    uint64_t tag = 0;
    std::array<Id, kBuiltInTemplates.size()> templates;  // their revisions; zeros: not there
    uint32_t cgroup_mode = 0;
    uint32_t enforced = 0;     // bits of Limit
    uint32_t oom_kill = 0;     // OomKill
    uint32_t landlock = 0;     // the kernel's ABI of it; scopes come with 6
    uint32_t quick_moves = 0;  // 1: moves between cgroups are quick (favordynmods)
    uint32_t host_cpus = 0;
    uint32_t pause = 0;        // bits of Pause
    uint64_t host_memory = 0;  // bytes
    uint64_t pool_bytes = 0;   // size of the pool
    uint64_t pool_free = 0;
};
struct ListReply {
    uint64_t tag = 0;
    Id sandbox;  // zeros if last
    uint32_t last = 0;
};
struct UsageReply {
    uint64_t tag = 0;
    uint64_t cpu_ms = 0;
    uint64_t memory_bytes = 0;
    uint64_t disk_bytes = 0;
    uint64_t pids = 0;
};
struct PoolReply {
    uint64_t tag = 0;
    uint64_t bytes = 0;
    uint64_t free = 0;
    uint64_t template_bytes = 0;  // of all templates
};
// Not an answer: a sandbox ended by itself (its agent or its nest died). Its files are still there
// until DestroyRequest. Those that ended before are told of after each HelloReply.
struct EndedEvent {
    Id sandbox;
    uint32_t signal = 0;  // that ended its agent, or 0
    uint32_t exit_code = 0;
    uint32_t reserved = 0;
};

using Request = std::variant<HelloRequest, CreateRequest, DestroyRequest, ListRequest, UsageRequest,
                             NarrowRequest, GrowPoolRequest, PoolRequest, FreezeRequest,
                             ReviveRequest, NetworkRequest>;
using Reply = std::variant<DoneReply, HelloReply, ListReply, UsageReply, EndedEvent, PoolReply>;

std::string encode(const Request& request);
std::string encode(const Reply& reply);
// InvalidArgument for anything but exactly one well-formed message.
Result<Request> decode_request(std::string_view bytes);
Result<Reply> decode_reply(std::string_view bytes);

// DoneReply <-> Result<void>.
DoneReply done(uint64_t tag, const Result<void>& result);
Result<void> result_of(const DoneReply& reply);

}  // namespace cloister::warden
