// Processes of the host: a pidfd that signals exactly one process, programs that are run to their
// end, and helpers forked for work that may be slow.
//
// Only single-threaded programs (the warden, the reaper) use these: fork copies one thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "os/fd.h"

namespace cloister::os {

// A reference to one process that can never mean another one. Readable (poll) when that process is
// dead.
class Pidfd {
  public:
    Pidfd() = default;
    explicit Pidfd(Fd fd) : fd_(std::move(fd)) {}

    bool open() const { return fd_.open(); }
    const Fd& fd() const { return fd_; }
    // A process that is dead already is a success.
    Result<void> signal(int number) const;

  private:
    Fd fd_;
};

// Every signal has its default effect, and none is blocked: for a child before it executes a
// program, which must not inherit what `nohup` or a shell in the background ignores.
void reset_signals();

// Runs a program with an empty environment but PATH, its errors on our standard error and its
// other output nowhere, and waits for it. Internal if it does not end with 0.
Result<void> run_program(const std::vector<std::string>& argv);

// A forked copy of this process that does one piece of work and answers how it went. Nobody waits
// for it: poll `done()`, then take the result. Its process is reaped by whoever reaps this
// program's children. It is killed when this program ends: a successor must not find it at work.
class Helper {
  public:
    static Result<Helper> start(const std::function<Result<void>()>& work);
    const Fd& done() const { return pipe_; }
    // Call when done() is readable. Internal if the helper died before it could answer.
    Result<void> take_result() const;

  private:
    explicit Helper(Fd pipe) : pipe_(std::move(pipe)) {}
    Fd pipe_;
};

// Reaps one child that has ended; nullopt if there is none now.
struct ChildEnd {
    pid_t pid = 0;
    int exit_code = 0;
    int signal = 0;  // that killed it, or 0
};
std::optional<ChildEnd> reap_one();
// Waits for every child. For a program's last moments, when all of them are about to end by
// themselves.
void reap_all();

// In a child that was just forked by `parent`: it is killed when that process ends.
void die_with(pid_t parent);

// A descriptor that becomes readable when one of `signals` arrives; they are blocked from now on.
Result<Fd> make_signal_fd(const std::vector<int>& signals);
// Takes what is there now from a signal descriptor: the signal's number, or 0.
int take_signal(const Fd& signal_fd);

}  // namespace cloister::os
