// Limits of processes, terminals and ports: the part of limits.h that only they need.
#pragma once

#include "base/limits.h"

namespace cloister::limits {

inline constexpr size_t kProcessesMax = 256;   // that run in a sandbox, started through the API
inline constexpr size_t kProcessesKept = 256;  // ended ones of a sandbox; the oldest goes
// Of what one process wrote, the newest.
inline constexpr uint64_t kProcessOutputKept = 64 * kMiB;
inline constexpr size_t kProcessTagMax = 64;
inline constexpr size_t kProcessArgvShown = 4 * kKiB;  // of its words, in answers
inline constexpr size_t kProcessLag = 256 * kKiB;      // of a live reader, before the program waits
inline constexpr size_t kProcessStdinBuffered = 32 * kKiB;
inline constexpr int64_t kProcessGraceMs = 500;      // SIGTERM at the timeout, SIGKILL this later
inline constexpr int64_t kTerminalSizeMax = 1000;    // columns, and rows
inline constexpr size_t kScreenReplay = 128 * kKiB;  // of a terminal's output, to show it again
inline constexpr size_t kAgentClientsMax = 448;
inline constexpr size_t kPortConnectionsMax = 64;  // into one sandbox at the same time
inline constexpr size_t kPortsPublishedMax = 64;
inline constexpr int64_t kPortConnectMs = 5'000;

}  // namespace cloister::limits
