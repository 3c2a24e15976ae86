// What a run used, from the counters of the sandbox's `user` cgroup.
//
//     UsageMeter meter(birth);
//     const Counters before = meter.begin();
//     …
//     const UsageSince used = meter.since(before);
//
// A counter that the host does not have stays 0.
#pragma once

#include <cstdint>

#include "programs/agent/birth_record.h"

namespace cloister::agent {

struct Counters {
    uint64_t cpu_usec = 0;
    uint64_t oom_kills = 0;
    uint64_t pids_max_hits = 0;
};

struct UsageSince {
    int64_t cpu_ms = 0;
    uint64_t memory_peak_bytes = 0;
    uint64_t oom_kills = 0;      // processes that the memory limit killed
    uint64_t pids_max_hits = 0;  // forks that the limit on processes refused
};

class UsageMeter {
  public:
    explicit UsageMeter(const Birth& birth) : birth_(birth) {}

    // What the sandbox was born with.
    const birth::Record& record() const { return birth_.record; }
    // The counters now; the peak of memory starts again where the kernel can do that.
    Counters begin() const;
    UsageSince since(const Counters& before) const;
    // Single counters, for looks in between.
    uint64_t oom_kills() const;
    int64_t cpu_ms_since(const Counters& before) const;
    uint64_t memory_now() const;

  private:
    Counters read() const;
    uint64_t cpu_usec() const;
    const Birth& birth_;
};

}  // namespace cloister::agent
