// Every limit and default of the program, in one place. Sizes in bytes, times in milliseconds
// unless the name says otherwise. contract/limits.md explains them to outsiders.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cloister::limits {

inline constexpr uint64_t kKiB = 1024;
inline constexpr uint64_t kMiB = 1024 * kKiB;
inline constexpr uint64_t kGiB = 1024 * kMiB;

// --- A request over HTTP ---
inline constexpr size_t kHttpHeaderMax = 32 * kKiB;
inline constexpr size_t kHttpTargetMax = 8 * kKiB;
inline constexpr size_t kJsonBodyMax = 16 * kMiB;  // body of a JSON request
inline constexpr size_t kJsonDepthMax = 32;        // nesting of a JSON request
inline constexpr uint64_t kUploadMax = 10 * kGiB;  // body of a file upload (streamed)
inline constexpr int64_t kHttpHeaderTimeoutMs =
    15'000;  // from connect or last answer's end to the header's end
inline constexpr int64_t kHttpBodyTimeoutMs = 60'000;  // between two reads of a body
inline constexpr int64_t kHttpWriteTimeoutMs =
    60'000;  // a reader that takes nothing for so long is cut off
inline constexpr size_t kWebSocketMessageMax = 1 * kMiB;  // of a client
inline constexpr size_t kConnectionsMax = 1024;           // open connections of the server

// --- Sandboxes ---
inline constexpr int kSandboxCpuDefault = 2;
inline constexpr int kSandboxCpuMax = 64;
inline constexpr uint64_t kSandboxMemoryDefault = 2 * kGiB;
inline constexpr uint64_t kSandboxMemoryMin = 128 * kMiB;
inline constexpr uint64_t kSandboxMemoryMax = 256 * kGiB;
inline constexpr uint64_t kSandboxDiskMin = 64 * kMiB;
inline constexpr uint64_t kSandboxDiskDefault = 10 * kGiB;
inline constexpr uint32_t kSandboxPidsDefault = 512;
// Of a sandbox's disk: read, and as much written. On cgroup v1 for direct I/O only.
inline constexpr uint64_t kSandboxDiskBytesPerSecond = 1 * kGiB;
inline constexpr uint32_t kSandboxDiskIops = 20'000;
inline constexpr uint64_t kSpoolBytesMax = 1 * kGiB;    // of all runs' whole output in a sandbox
inline constexpr uint64_t kAgentMemoryMax = 32 * kMiB;  // the agent's own group in a sandbox
inline constexpr uint32_t kAgentPidsMax = 64;
inline constexpr int64_t kSandboxIdleDefaultMs = 1'200'000;
inline constexpr int64_t kSandboxIdleMinMs = 1'000;
inline constexpr int64_t kSandboxIdleMaxMs = 30LL * 24 * 3600 * 1000;
inline constexpr size_t kSandboxesMax = 1000;  // live ones on this host
inline constexpr int64_t kSandboxCreateTimeoutMs = 30'000;
inline constexpr size_t kMetadataEntriesMax = 64;
inline constexpr size_t kMetadataBytesMax = 16 * kKiB;

// --- Runs ---
inline constexpr int64_t kRunTimeoutDefaultMs = 300'000;
inline constexpr int64_t kRunTimeoutMinMs = 1;
inline constexpr int64_t kRunTimeoutMaxMs = 24LL * 3600 * 1000;
inline constexpr int64_t kInterruptGraceMs = 500;  // SIGINT at the timeout, SIGKILL this much later
inline constexpr int64_t kRunCpuTimeMinMs = 10;
inline constexpr int64_t kRunCpuTimeMaxMs = 24LL * 3600 * 1000;
inline constexpr int64_t kCpuTimeLookMs =
    50;  // how often the CPU time of a run with a limit is read
inline constexpr uint64_t kRunMemoryMin = 32 * kMiB;  // what a run may narrow the sandbox's to
inline constexpr uint32_t kRunPidsMin = 4;
inline constexpr uint64_t kRunOutputMin = 1;
inline constexpr size_t kSpoolInMemory =
    64 * kKiB;  // of a run's frames, before its spool is a file
inline constexpr uint64_t kSpoolMarkStep = 1 * kMiB;  // a range is found from the mark before it
inline constexpr size_t kOutputsKeptMax = 1'000;  // of ended runs, in a sandbox; the oldest goes
// Runs whose end nobody has taken yet; the oldest goes first.
inline constexpr size_t kUnclaimedRunsMax = 256;
inline constexpr int64_t kKillGraceMs = 250;  // then the sandbox itself is given up
inline constexpr size_t kCodeMax = 4 * kMiB;
inline constexpr size_t kArgvMax = 256;
inline constexpr size_t kEnvEntriesMax = 256;
inline constexpr size_t kEnvBytesMax = 128 * kKiB;         // names and values of one env together
inline constexpr size_t kInlineFilesMax = 64;              // files inside a run request
inline constexpr uint64_t kOutputMaxDefault = 256 * kMiB;  // stdout + stderr + displays of a run
inline constexpr size_t kInlineOutputMax =
    1 * kMiB;  // of each stream in a JSON answer: head and tail
inline constexpr size_t kInlineOutputLeast = 1 * kKiB;  // of what a request may ask for
inline constexpr size_t kInlineOutputLargest = 4 * kMiB;
// One message of an interpreter. The agent, which has 32 MiB of memory, holds one such message
// whole.
inline constexpr size_t kDisplayMax = 8 * kMiB;
inline constexpr size_t kPictureMax = 4 * kMiB;    // the drivers hold themselves to it
inline constexpr size_t kRunEventsMax = 4 * kMiB;  // events kept for readers that come back
inline constexpr int64_t kHeartbeatMs = 15'000;    // on a stream of events on which nothing happens
inline constexpr size_t kRunQueueMax = 64;         // runs that wait for one context
inline constexpr int64_t kMetricsEveryMs = 1'000;  // between the `metrics` events of a run
inline constexpr size_t kContextsMax = 128;        // of one sandbox
inline constexpr size_t kLanguageMax = 64;  // bytes of a language's name, `jupyter:` included
inline constexpr int64_t kContextStartTimeoutMs = 60'000;
inline constexpr size_t kFinishedRunsInMemory = 256;  // older ones are answered from the database
inline constexpr int64_t kRunRecordKeepMs = 24LL * 3600 * 1000;

inline constexpr size_t kFinishedRunBytesInMemory = 64 * kMiB;  // of ended runs, together
inline constexpr size_t kRunRecordMax =
    4 * kMiB;  // of one record in the database: a larger one drops its results
inline constexpr size_t kStdinCallMax = 1 * kMiB;  // body of one writeStdin
inline constexpr size_t kStdinWritersMax = 8;      // calls that wait for one run's stdin
inline constexpr size_t kFilenameMax = 255;
inline constexpr size_t kPathMax = 4096;

// --- Keys ---
inline constexpr size_t kKeysMax = 1000;  // of one project
inline constexpr size_t kKeyNameMax = 100;

// --- Artifacts: files that a run created or changed ---
inline constexpr size_t kArtifactsMax = 256;        // listed for one run; more are counted
inline constexpr size_t kArtifactWalkMax = 20'000;  // directory entries looked at
inline constexpr int kArtifactDepthMax = 12;
inline constexpr uint64_t kArtifactKeepBytes =
    64 * kMiB;  // kept of a one-call run after its sandbox is gone
inline constexpr int64_t kArtifactKeepMs = 3'600'000;

// --- Between our programs ---
inline constexpr size_t kAgentFrameMax = 64 * kMiB;  // one frame of the agent protocol
inline constexpr size_t kStreamChunk =
    64 * kKiB;  // bytes of one stdout, stderr, stdin or file frame
inline constexpr size_t kStdinBuffered = 256 * kKiB;  // stdin held by the agent for a slow reader
inline constexpr size_t kAgentConnectionsMax = 48;
// A request to the agent: code with every character escaped, and the rest. It holds one such whole.
inline constexpr size_t kAgentRequestMax = 2 * kCodeMax + kMiB;
// Output that waits for a slow reader of a run; beyond it the program that writes waits. A run that
// is being stopped must not wait for its reader.
inline constexpr size_t kAgentOutputBuffered = 256 * kKiB;
inline constexpr size_t kAgentOutputBufferedAtStop = 2 * kMiB;
// The walk for artifacts; short after a timeout, so that the run ends within a second of it.
inline constexpr int64_t kArtifactWalkMs = 2'000;
inline constexpr int64_t kArtifactWalkAtStopMs = 150;
inline constexpr size_t kWardenMessageMax = 4096;
inline constexpr int64_t kWardenTimeoutMs = 30'000;

// --- Ids (design §5): a slot is what one sandbox owns of the host's user and group ids ---
inline constexpr uint32_t kHostIdFirst = 0x70000000;
inline constexpr uint32_t kHostIdLast = 0xEFFFFFFF;
inline constexpr uint32_t kSlotIds = 8192;
inline constexpr uint32_t kNestSlots = 1024;
inline constexpr uint32_t kLowIds = 4096;        // ids 0..4095 of a sandbox
inline constexpr uint32_t kHighIdFirst = 65533;  // and 65533..65535
inline constexpr uint32_t kHighIds = 3;
inline constexpr uint32_t kAgentId = 65533;
inline constexpr uint32_t kUserId = 1000;

// --- The warden ---
inline constexpr size_t kWardenHelpersMax = 8;  // forked for slow work, at the same time
inline constexpr size_t kWardenConnectionsMax = 8;
inline constexpr size_t kNestsIdleMax =
    4;  // nests without a sandbox that are kept for the next one
inline constexpr uint64_t kZygoteMemoryMax = 1 * kGiB;  // of a nest's zygote and what it shares
inline constexpr uint32_t kZygotePidsMax = 512;
inline constexpr int64_t kZygotePauseMs = 10'000;  // between two tries to start a nest's zygote
// An agent waits so long for a forked interpreter, then starts one itself.
inline constexpr int64_t kForkTimeoutMs = 1'000;
inline constexpr size_t kNestLogLine = 1024;  // bytes of one line that an agent or reaper logs
inline constexpr size_t kJournalBytesMax = 1 * kMiB;  // of the warden; then it is written anew
inline constexpr uint64_t kShmShare = 8;  // /dev/shm holds this part of a sandbox's memory
inline constexpr uint64_t kRunTmpfsMax = 16 * kMiB;
inline constexpr uint64_t kRuntimeFilesMax = 10'000;
inline constexpr uint64_t kRuntimeBytesMax = 256 * kMiB;

// A sandbox that used more than kBusyCpuMs of CPU in kBusyWindowMs comes last (os::CpuTurn), until
// it has rested for kRestMs.
inline constexpr int64_t kBusyWindowMs = 2'000;
inline constexpr int64_t kBusyCpuMs = 1'000;
inline constexpr int64_t kRestMs = 1'000;
inline constexpr int64_t kBusyLookMs = 500;
inline constexpr uint32_t kAgentCpuShares = 16 * 1024;  // a group has 1024 by itself
inline constexpr int64_t kProcViewMs = 1'000;   // age of the figures in a sandbox's /proc, at most
inline constexpr size_t kRootCommandsMax = 32;  // `sudo` at the same time, in a sandbox
inline constexpr size_t kRootRequestMax = 256 * kKiB;  // its words and environment together

// --- The btrfs pool ---
inline constexpr uint64_t kPoolDefaultMax = 50 * kGiB;  // and at most a quarter of the free space
inline constexpr uint64_t kPoolMin = 4 * kGiB;

// --- The network ---
inline constexpr size_t kNetworkEntriesMax = 10'000;         // of allow_out, and of deny_out
inline constexpr size_t kNetworkEntriesBytesMax = 2 * kMiB;  // of one of them
inline constexpr size_t kNetworkConnectionsMax = 256;        // of a sandbox at a time
inline constexpr size_t kNetworkLogMax = 1'000;              // lines of a sandbox; the oldest go

// The platform deny set: what no sandbox may reach, whatever its policy says, unless the operator
// opens it (`platform_allow` in cloister.toml). The addresses of the host itself belong to it, too;
// they are read from the host.
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

// --- The service started by `cloister run` ---
inline constexpr int64_t kAutoStartIdleExitMs = 600'000;

}  // namespace cloister::limits
