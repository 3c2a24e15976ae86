// For unit tests of this room: runs one coroutine on a loop of its own until it ends.
#pragma once

#include <gtest/gtest.h>

#include <chrono>

#include "loop/loop.h"

namespace cloister::engine {

class Checks {
  public:
    // Lets everything that can run now run.
    Task<void> settle() { co_await sleep_for(std::chrono::milliseconds(20)); }
};

inline Task<void> run_and_stop(Loop& loop, Checks& checks, Task<void> (*body)(Checks&)) {
    co_await body(checks);
    loop.stop();
}

// A body that hangs ends the test after 60 s, as a failure.
inline Task<void> stop_late(Loop& loop, bool& late) {
    co_await sleep_for(std::chrono::seconds(60));
    late = true;
    loop.stop();
}

inline void on_loop(Task<void> (*body)(Checks&)) {
    Checks checks;
    bool late = false;
    Loop loop;
    loop.spawn(run_and_stop(loop, checks, body));
    loop.spawn(stop_late(loop, late));
    loop.run();
    EXPECT_FALSE(late) << "the test hangs";
}

}  // namespace cloister::engine
