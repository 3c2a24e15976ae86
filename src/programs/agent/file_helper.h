// FileHelper: a child that is `user` or root of the sandbox and forks a child of its own for every
// piece of work on files. So a slow disk never delays the agent, and entering the user's cgroup,
// which can cost milliseconds, is paid once and not for every piece of work.
//
// User code can kill or stop the helper, since it is the same user; it is started again then.
#pragma once

#include <functional>
#include <string>
#include <variant>

#include "programs/agent/changed_files.h"
#include "programs/agent/file_request.h"
#include "programs/agent/user_process.h"

namespace cloister::agent {

// The text of a request that was decoded and checked before (file_request.h).
struct FileWorkText {
    std::string text;
};
using FileWork = std::variant<FileWorkText, WalkRequest>;

class FileHelper {
  public:
    FileHelper(const UserProcesses& processes, Identity identity, std::string home)
        : processes_(processes), identity_(identity), home_(std::move(home)) {}

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
    const Identity identity_;
    const std::string home_;  // where relative paths begin
    os::Fd socket_;
    pid_t pid_ = -1;
};

}  // namespace cloister::agent
