// Which sandboxes have to give way: CPU weights that follow use. Pure: times and counters go in.
//
//     BusyMeter meter;
//     meter.look(now_ms, cpu_ms);
//     if (meter.busy()) …   // its turn comes last (os::CpuTurn)
#pragma once

#include <cstdint>
#include <deque>

namespace cloister::warden {

// One sandbox. It is busy when it has used more than limits::kBusyCpuMs of CPU time in
// limits::kBusyWindowMs, until it has rested for limits::kRestMs.
class BusyMeter {
  public:
    // `cpu_ms` is all CPU time that the sandbox has ever used.
    void look(int64_t now_ms, uint64_t cpu_ms);
    bool busy() const { return busy_; }
    // Whether it used noteworthy CPU time between the last two looks.
    bool active() const { return active_; }

  private:
    struct Look {
        int64_t at_ms = 0;
        uint64_t cpu_ms = 0;
    };
    std::deque<Look> looks_;  // of the window, oldest first
    int64_t resting_since_ms_ = 0;
    bool active_ = false;
    bool busy_ = false;
};

// A nest competes with other nests: it gives way when those of its sandboxes that are active are
// all busy ones.
class NestBalance {
  public:
    void add(const BusyMeter& sandbox);
    bool gives_way() const { return busy_ && !others_active_; }

  private:
    bool busy_ = false, others_active_ = false;
};

}  // namespace cloister::warden
