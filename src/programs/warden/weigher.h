// Weigher: sets the CPU weights of sandboxes and nests after what weights.h says of their use.
//
// Weights matter only while CPU time is short, so the kernel's pressure information wakes it; on an
// idle host it does nothing at all. Where the kernel has none it looks now and then, seldom while
// nothing is used.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "os/cgroup.h"
#include "os/poller.h"
#include "programs/warden/weights.h"
#include "wire/warden.h"

namespace cloister::warden {

class Weigher {
  public:
    struct Running {
        std::string nest;
        Id sandbox;
        auto operator<=>(const Running&) const = default;
    };

    // `running` answers the sandboxes that run now.
    Weigher(const os::CgroupTree& cgroups, std::function<std::vector<Running>()> running)
        : cgroups_(cgroups), running_(std::move(running)) {}

    void open(os::Poller& poller);
    // Looks if it is time.
    void tick(int64_t now_ms);
    // One that is going: nothing of it is kept until the next look, which may be far off.
    void forget(const Running& sandbox) { entries_.erase(sandbox); }
    // When tick() wants to be called next.
    std::optional<int64_t> next_look() const { return next_look_ms_; }

  private:
    struct Entry {
        os::Fd cpu_usage;
        BusyMeter meter;
    };
    void wake(int64_t now_ms);
    void forget_ended(const std::vector<Running>& running);
    void look(int64_t now_ms, const Running& sandbox);
    void weigh_nests();
    void set_turn(const std::string& group, os::CpuTurn turn);

    const os::CgroupTree& cgroups_;
    const std::function<std::vector<Running>()> running_;
    os::Fd pressure_;
    std::map<Running, Entry> entries_;
    std::map<std::string, bool> nests_;  // those that were weighed, and whether they give way
    std::optional<int64_t> next_look_ms_;
    int64_t awake_until_ms_ = 0;
};

}  // namespace cloister::warden
