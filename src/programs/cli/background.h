// Threads of `cloister run` beside the one that reads the run's events. Each ends when its object
// does.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "os/fd.h"
#include "programs/cli/api.h"

namespace cloister::cli {

// Sends our standard input to a run until its end, or until the run takes no more. Waits for input,
// never for long: an idle pipe does not hold the run.
class StdinPump {
  public:
    static Result<StdinPump> start(Api api, std::string run_id);
    StdinPump(StdinPump&&) noexcept = default;
    StdinPump& operator=(StdinPump&&) = delete;
    ~StdinPump();

  private:
    StdinPump(os::Fd stop, std::thread thread)
        : stop_(std::move(stop)), thread_(std::move(thread)) {}
    os::Fd stop_;  // closing it ends the thread's wait
    std::thread thread_;
};

// Whether standard input holds something for a run: a pipe or a file, not a terminal and not
// /dev/null.
bool stdin_is_for_run();

// Listens for SIGINT and SIGTERM (blocked in all threads from create() on). The first SIGINT
// interrupts the run; the second one, or SIGTERM, deletes the sandbox, if that is ours, else it
// kills us, and the run with its stream; a third one kills us the usual way.
class Interrupts {
  public:
    explicit Interrupts(Api api) : api_(std::move(api)) {}
    Interrupts(const Interrupts&) = delete;
    Interrupts& operator=(const Interrupts&) = delete;
    ~Interrupts();

    Result<void> start();
    void set_sandbox(std::string id);
    void set_run(std::string id);
    // The sandbox is not ours.
    void keep_sandbox() { keeps_sandbox_ = true; }
    // 130 or 143 if the sandbox was given up by a signal, else 0.
    int exit_code() const { return exit_code_; }

  private:
    void listen(const os::Fd& stop);
    void handle(int signal);
    void give_up(int signal);

    Api api_;
    os::Fd signals_, stop_;
    std::mutex mutex_;
    std::string sandbox_, run_;  // under mutex_
    int interrupts_ = 0;
    std::atomic<int> exit_code_ = 0;
    std::atomic<bool> keeps_sandbox_ = false;
    std::thread thread_;
};

}  // namespace cloister::cli
