// A pseudo terminal of the sandbox's own devpts, for a process that wants one.
#pragma once

#include <cstdint>

#include "os/fd.h"

namespace cloister::agent {

struct TerminalSize {
    uint16_t cols = 80;
    uint16_t rows = 24;
};

struct Terminal {
    os::Fd ours;    // the master, non-blocking
    os::Fd theirs;  // the slave: becomes 0, 1 and 2 of the process
};

// It belongs to `owner`, so that programs may open it by its name.
Result<Terminal> open_terminal(TerminalSize size, uint32_t owner);
// The processes in its foreground get SIGWINCH if that is a change.
Result<void> resize_terminal(const os::Fd& ours, TerminalSize size);

// Follows what is written to a terminal, as far as it must be known to show its screen again:
// whether a full-screen program has switched to the alternate screen.
class ScreenWatch {
  public:
    // `offset`: of the first byte.
    void feed(std::string_view bytes, uint64_t offset);
    bool alternate() const { return alternate_; }
    // Where the alternate screen was entered.
    uint64_t since() const { return since_; }

  private:
    std::string tail_;  // the last bytes: a sequence may come in pieces
    bool alternate_ = false;
    uint64_t since_ = 0;
};

}  // namespace cloister::agent
