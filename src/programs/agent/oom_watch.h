// OomWatch: when the memory limit has killed one process of the sandbox, the rest of them go too.
// On cgroup v2 the kernel does that by itself; on v1 it takes one process and leaves a torso that
// nobody can rely on. Files and the agent, which has memory of its own, stay.
//
// The kernel's event comes before its kill, so that the counter is looked at for a while after it.
#pragma once

#include <cstdint>
#include <optional>

#include "os/poller.h"
#include "programs/agent/usage.h"

namespace cloister::agent {

class OomWatch {
  public:
    OomWatch(const Birth& birth, const UsageMeter& meter) : birth_(birth), meter_(meter) {}

    void open(os::Poller& poller);
    // Kills everything if the counter has risen since the last look.
    void look(int64_t now_ms);
    // When look() wants to be called next.
    std::optional<int64_t> next_look() const { return next_look_ms_; }

  private:
    void on_event();

    const Birth& birth_;
    const UsageMeter& meter_;
    uint64_t kills_ = 0;  // that have been dealt with
    std::optional<int64_t> next_look_ms_;
    int64_t give_up_ms_ = 0;
};

}  // namespace cloister::agent
