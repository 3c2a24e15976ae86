// Slow work in forked helpers, a few at a time, so that the warden itself never waits.
#pragma once

#include <deque>
#include <functional>
#include <map>

#include "os/poller.h"
#include "os/process.h"

namespace cloister::warden {

class Helpers {
  public:
    explicit Helpers(os::Poller& poller) : poller_(poller) {}
    Helpers(const Helpers&) = delete;
    Helpers& operator=(const Helpers&) = delete;

    using Work = std::function<Result<void>()>;
    using Done = std::function<void(Result<void>)>;
    // Runs `work` in a helper as soon as there is room, then calls `done` here.
    void run(Work work, Done done);
    bool busy() const { return !waiting_.empty() || !running_.empty(); }

  private:
    struct Job {
        Work work;
        Done done;
    };
    struct Running {
        os::Helper helper;
        Job job;
    };
    void start_waiting();
    void start(Job job);
    void finish(uint64_t number);

    os::Poller& poller_;
    std::deque<Job> waiting_;
    std::map<uint64_t, Running> running_;
    uint64_t next_number_ = 1;
};

}  // namespace cloister::warden
