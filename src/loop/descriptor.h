// A descriptor of any kind on the loop: waits until something can be done with it. What is done is
// the owner's: try it first, wait when it says that it would have to.
//
//     for (;;) {
//         auto got = os::try_read(descriptor.fd(), buffer);
//         if (got && !*got && co_await descriptor.readable()) continue;
//         …
//     }
//
// Threading: the loop's thread.
#pragma once

#include <chrono>
#include <memory>

#include "base/result.h"
#include "loop/loop.h"
#include "os/fd.h"

namespace cloister {

class Descriptor {
  public:
    Descriptor();
    Descriptor(Descriptor&&) noexcept;
    Descriptor& operator=(Descriptor&&) noexcept;
    ~Descriptor();  // ends what waits

    static Result<Descriptor> adopt(os::Fd fd);

    bool open() const { return impl_ != nullptr; }
    const os::Fd& fd() const;
    // False if it was closed meanwhile. One waiter for each direction. Whoever waits holds the
    // owner.
    Task<bool> readable();
    Task<bool> writable();
    enum class Wait { Ready, TimedOut, Closed };
    Task<Wait> readable_within(std::chrono::milliseconds most);
    Task<Wait> writable_within(std::chrono::milliseconds most);
    // Ends what waits; the descriptor is closed when nobody waits any more.
    void close();

  private:
    struct Impl;
    enum class For { Read, Write };
    static Task<Wait> wait_within(std::shared_ptr<Impl> held, For what,
                                  std::chrono::milliseconds most);
    std::shared_ptr<Impl> impl_;
};

}  // namespace cloister
