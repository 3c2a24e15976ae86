// Poller: calls functions when their descriptors are readable or writable (or closed at the other
// end). For programs without threads and coroutines.
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

// What a descriptor is watched for. None: it stays watched, but nothing is called for now. Urgent:
// the kernel's word for events of files that can always be read.
enum class Interest { None, Read, Write, ReadWrite, Urgent };

class Poller {
  public:
    void watch(const Fd& fd, std::function<void()> on_ready, Interest interest = Interest::Read);
    void unwatch(const Fd& fd);
    // Changes what a watched descriptor is watched for.
    void set_interest(const Fd& fd, Interest interest);
    // Waits for something to happen, at most `timeout_ms` (-1: for ever), and calls what is to be
    // called.
    Result<void> wait(int timeout_ms);

  private:
    struct Entry {
        uint64_t generation = 0;  // tells a descriptor from an earlier one of the same number
        Interest interest = Interest::Read;
        std::function<void()> on_ready;
    };
    std::map<int, Entry> entries_;
    uint64_t next_generation_ = 1;
};

}  // namespace cloister::os
