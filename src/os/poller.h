// Poller: calls functions when their descriptors are readable (or closed at the other end). For
// programs without threads and coroutines.
//
//     Poller poller;
//     poller.watch(listener, [&] { accept_one(); });
//     for (;;) TRY_OK(poller.wait(timeout_ms));
//
// A function may watch and unwatch any descriptor, its own too. Unwatch before you close one.
#pragma once

#include <functional>
#include <map>

#include "os/fd.h"

namespace cloister::os {

class Poller {
  public:
    void watch(const Fd& fd, std::function<void()> on_readable);
    void unwatch(const Fd& fd);
    // Waits for something to happen, at most `timeout_ms` (-1: for ever), and calls what is to be
    // called.
    Result<void> wait(int timeout_ms);

  private:
    struct Entry {
        uint64_t generation = 0;  // tells a descriptor from an earlier one of the same number
        std::function<void()> on_readable;
    };
    std::map<int, Entry> entries_;
    uint64_t next_generation_ = 1;
};

}  // namespace cloister::os
