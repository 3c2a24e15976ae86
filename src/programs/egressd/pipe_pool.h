// Pipes that bytes pass through on their way from one socket to another, without being copied.
// Empty ones are kept for the next who needs one.
#pragma once

#include <vector>

#include "os/fd.h"

namespace cloister::egressd {

class PipePool {
  public:
    Result<os::Pipe> take() {
        if (free_.empty()) return os::make_pipe(os::Blocking::No);
        os::Pipe out = std::move(free_.back());
        free_.pop_back();
        return out;
    }
    // It must be empty.
    void put_back(os::Pipe pipe) {
        constexpr size_t kKept = 64;
        if (pipe.read.open() && free_.size() < kKept) free_.push_back(std::move(pipe));
    }

  private:
    std::vector<os::Pipe> free_;
};

}  // namespace cloister::egressd
