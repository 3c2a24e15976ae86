// Processes of user code: how they are started, and how a whole family of them is ended.
//
// Each of them is in the `user` cgroup, has the `final` filter, and is one of two: `user` (1000)
// without any capability, or root of the sandbox with eight; neither can gain any. None inherits a
// descriptor of the agent that it was not given.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/limits.h"
#include "os/process_table.h"
#include "programs/agent/birth_record.h"

namespace cloister::agent {

enum class Identity { User, Root };

// Open files that a program of the sandbox may have at first; the agent has more.
inline constexpr uint64_t kFilesOfPrograms = 1024;

struct Program {
    Identity identity = Identity::User;
    std::vector<std::string> argv;  // a first word without a slash is looked for in PATH of env
    std::vector<std::string> env;   // NAME=VALUE
    std::string cwd;
    // Becomes 0, 1, 2, 3 … of the program, in this order.
    std::vector<const os::Fd*> fds;
    // Not empty: a regular file that becomes 0, opened with the rights of the program.
    std::string stdin_path;
    // Yes: 0 is a terminal, and becomes the controlling one of the session.
    enum class Terminal { No, Yes } terminal = Terminal::No;
};

class UserProcesses {
  public:
    explicit UserProcesses(const Birth& birth) : birth_(birth) {}

    // Starts a program in a session and process group of its own. `failure` becomes readable with
    // one sentence if it could not be executed, else it closes.
    Result<pid_t> start(const Program& program, os::Fd& failure) const;

    // Forks a child of our own code that becomes `identity` and runs `work` with a duplicate of
    // `kept` as its only descriptor. It is not the user's to look into.
    Result<pid_t> start_worker(Identity identity, const os::Fd& kept,
                               const std::function<void(os::Fd)>& work) const;

  private:
    // Answers the name of the step that failed, or nullptr.
    const char* become(Identity identity) const;
    const char* load_final_filter() const;
    const char* prepare(const Program& program, int report) const;
    [[noreturn]] void execute(const Program& program, const os::Fd& failure) const;

    const Birth& birth_;
};

// SIGKILL for `leader`, its process group, and all that descend from it, also in other sessions. A
// daemon that forked away has lost its ancestors, and lives on.
void kill_family(pid_t leader);
// SIGKILL for all processes of the session that `session` led, also when it has ended.
void kill_session(pid_t session);
// SIGKILL for whatever was started in the sandbox after `mark`, daemons that forked away included;
// only `leader` itself, and the families of `others`, live on.
void kill_started_since(const os::BirthMark& mark, pid_t leader, const std::vector<pid_t>& others);
// SIGKILL for every process of the sandbox but the agent.
void kill_everything();

}  // namespace cloister::agent
