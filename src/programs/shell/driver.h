// Driver: the interpreter `bash` of a sandbox, as cloister-agent sees it. One run at a time.
//
// A run that is interrupted and does not end is helped along: what it has started is killed, and
// the shell interrupted again, so that the shell and its state outlive the agent's patience.
#pragma once

#include <memory>
#include <optional>

#include "os/process.h"
#include "os/process_table.h"
#include "programs/shell/channel.h"
#include "programs/shell/request.h"
#include "programs/shell/shell.h"

namespace cloister::shell {

class Driver {
  public:
    static Result<std::unique_ptr<Driver>> create(os::Fd agent, const std::string& scripts);

    // Serves until the agent or the shell is gone; answers the shell's end, if that is why.
    Result<std::optional<os::ChildEnd>> serve();

  private:
    Driver(os::Fd agent, std::string bash);
    Result<void> open(const std::string& scripts);

    // What woke us up. During a run the agent is not listened to.
    enum class Event { Agent, Answer, Interrupt, Nothing };
    enum class During { Run, Rest };
    Event wait(During what, int64_t until_ms);
    void reap();

    Result<void> run(Message message);
    Result<void> execute(const Request& request);
    std::optional<std::string> enter_directory(const Request& request);
    // Waits for the run's end; nullopt: the shell has ended without an answer.
    std::optional<int> follow(const os::BirthMark& mark);
    Result<void> report(std::string_view name, std::string_view value,
                        const std::vector<std::string>& traceback, int64_t line);
    Result<void> report_syntax(std::string_view code);
    Result<void> reply(int status);
    void take_stdin(const os::Fd& fd);

    const std::string bash_;
    Channel channel_;
    os::Fd signals_, null_;
    std::optional<Shell> shell_;
    std::optional<os::ChildEnd> shell_end_;
    int64_t count_ = 0;  // of runs
};

}  // namespace cloister::shell
