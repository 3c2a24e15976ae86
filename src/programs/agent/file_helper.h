// FileHelper: a child that is the sandbox's user and forks a child of its own for every piece of
// work on files. So a slow disk never delays the agent, and entering the user's cgroup, which can
// cost milliseconds, is paid once and not for every piece of work.
//
// User code can kill or stop the helper, since it is the same user; it is started again then.
#pragma once

#include <functional>
#include <string>
#include <variant>

#include "programs/agent/changed_files.h"
#include "programs/agent/file_ops.h"
#include "programs/agent/user_process.h"

namespace cloister::agent {

using FileWork = std::variant<FileRead, FileWrite, WalkRequest>;

class FileHelper {
  public:
    explicit FileHelper(const UserProcesses& processes) : processes_(processes) {}

    // Has `work` done on `channel`, which the caller then closes: the connection of a file
    // operation, or the pipe that takes the answer of a walk.
    Result<void> start(const FileWork& work, const os::Fd& channel);
    // Starts the helper now, so that the first piece of work need not wait for it.
    Result<void> prepare();
    // A child of the agent ended.
    void on_child_end(pid_t pid);
    void stop();
    pid_t pid() const { return pid_; }  // -1: it does not run

  private:
    const UserProcesses& processes_;
    os::Fd socket_;
    pid_t pid_ = -1;
};

}  // namespace cloister::agent
