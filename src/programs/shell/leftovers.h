// What a run has started and what outlives it, or does not let it end.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "os/process_table.h"

namespace cloister::shell {

// Whether a shell has had children since a moment, or has some now. Cheaper than looking at all
// processes, which most runs do not need.
class ChildWatch {
  public:
    explicit ChildWatch(pid_t shell) : shell_(shell), faults_(faults()) {}
    bool saw_any() const;

  private:
    // What children that have been waited for did: the kernel's sum of them, as text.
    std::string faults() const;
    pid_t shell_;
    std::string faults_;
};

// SIGKILL for all that descends from `shell` and was started after `mark`.
void kill_started(pid_t shell, const os::BirthMark& mark);

// Waits until no process of our session that was started after `mark` has our stdout
// or stderr any more, the shell left out; at most `most_ms`. So the last words of `> >(filter)` and
// of a quick program in the background still belong to their run.
void drain(pid_t shell, const os::BirthMark& mark, int64_t most_ms);

}  // namespace cloister::shell
