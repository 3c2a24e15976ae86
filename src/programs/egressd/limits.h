// What one sandbox may have of the network at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/limits.h"

namespace cloister::egressd {

inline constexpr size_t kStreamsMax =
    limits::kNetworkConnectionsMax;                // connections of a sandbox at a time
inline constexpr size_t kStreamsOfAllMax = 2'500;  // of all sandboxes: six descriptors each
inline constexpr double kStreamsPerSecond = 200;   // new ones of a sandbox
inline constexpr double kStreamsBurst = 400;
inline constexpr double kLookupsPerSecond = 50;
inline constexpr double kLookupsBurst = 200;
inline constexpr size_t kLookupsAtOnce = 64;
inline constexpr double kBytesPerSecond = 1ull << 30;  // both directions together
inline constexpr double kBytesBurst = 256ull << 20;
inline constexpr double kRecordsPerSecond = 100;  // of the log; the rest is counted
inline constexpr double kRecordsBurst = 500;
inline constexpr size_t kFlowsMax = 256;  // pairs of ends that exchange datagrams
inline constexpr int64_t kFlowIdleMs = 60'000;
inline constexpr size_t kPinsMax = 4096;  // addresses learned from look-ups
inline constexpr int64_t kPinMs = 600'000;
inline constexpr size_t kLabelMaxInLookups = 52;
inline constexpr uint32_t kTtlMax = 300;
inline constexpr size_t kDatagramMax = 65'507;

// A client that says nothing so long waits for the server to begin.
inline constexpr std::chrono::milliseconds kSilence{250};
// What began must be whole by then.
inline constexpr std::chrono::milliseconds kOpeningTime{10'000};
inline constexpr std::chrono::milliseconds kDialOne{3'000};  // while there are others to try
inline constexpr std::chrono::milliseconds kDialLast{15'000};
inline constexpr int64_t kHalfClosedIdleMs = 120'000;
inline constexpr int64_t kIdleMs = 3'600'000;

}  // namespace cloister::egressd
