// RestartBudget: how often a crashed program is started again, and after which pause.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace cloister::cli {

class RestartBudget {
  public:
    // The pause before the next start in milliseconds; nullopt: it crashed too often, give up.
    std::optional<int64_t> next(int64_t now_ms);

  private:
    std::deque<int64_t> restarts_;  // of the last minute
};

}  // namespace cloister::cli
