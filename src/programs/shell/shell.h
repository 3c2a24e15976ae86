// Shell: the bash of a context, which executes one run after the other (kernels/bash).
//
//     Shell shell = TRY(Shell::start(bash, "/opt/cloister/kernels/bash"));
//     TRY_OK(shell.begin({.number = 1, .code = "echo hi"}));
//     … poll shell.answers() …
//     shell.take_answer(1)          // the status, once
//
// The two share no descriptor. The shell opens ours as /proc/PID/fd/NUMBER, so they have fixed
// numbers, and there is one Shell in a process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "os/fd.h"
#include "wire/json.h"

namespace cloister::shell {

// One run, as the shell is told of it.
struct Order {
    int64_t number = 0;  // from 1
    std::string cwd;     // empty: where it is
    std::string code;
    std::optional<std::vector<std::string>> args;  // $1, $2 …; nullopt: as they are
    StringMap env;
};

class Shell {
  public:
    // `scripts` is where loop.bash and functions.bash lie. Returns when it is ready for a run.
    static Result<Shell> start(const std::string& bash, const std::string& scripts);

    pid_t pid() const { return pid_; }
    const std::string& version() const { return version_; }

    Result<void> begin(const Order& order);
    // Readable when there may be an answer.
    const os::Fd& answers() const { return answers_; }
    // The status of run `number`, if it has ended. Never waits.
    std::optional<int> take_answer(int64_t number);
    // The shell has written its state down and is making room for the next: a signal now would hit
    // one that cannot keep it.
    bool is_changing() const;
    // Where it is; empty if that directory is gone.
    std::string cwd() const;

  private:
    Shell() = default;
    Result<void> open_descriptors(const std::string& scripts);
    Result<void> launch(const std::string& bash);
    Result<void> await_version();
    std::optional<std::string> take_line();

    pid_t pid_ = -1;
    std::string version_;
    std::vector<os::Fd> fixed_;  // those that the shell opens
    os::Fd bell_, answers_;
    std::string pending_;  // of answers, up to the next line's end
};

}  // namespace cloister::shell
