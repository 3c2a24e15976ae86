// A bucket of tokens that fills up with time: how much may be had at once, and how much a second.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cloister::egressd {

class Bucket {
  public:
    Bucket(double per_second, double burst)
        : per_ms_(per_second / 1000), burst_(burst), held_(burst) {}

    bool try_take(double amount, int64_t now_ms) {
        fill(now_ms);
        if (held_ < amount) return false;
        held_ -= amount;
        return true;
    }
    // Takes in any case; answers how long to wait until the debt is paid.
    int64_t take(double amount, int64_t now_ms) {
        fill(now_ms);
        held_ -= amount;
        return held_ >= 0 ? 0 : static_cast<int64_t>(-held_ / per_ms_) + 1;
    }

  private:
    void fill(int64_t now_ms) {
        if (last_ms_ != 0)
            held_ = std::min(burst_, held_ + per_ms_ * static_cast<double>(now_ms - last_ms_));
        last_ms_ = now_ms;
    }
    double per_ms_, burst_, held_;
    int64_t last_ms_ = 0;
};

}  // namespace cloister::egressd
