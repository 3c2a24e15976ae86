// The local terminal in raw mode, for a terminal in a sandbox: every key goes there, Ctrl-C too. It
// is put back whenever this ends.
#pragma once

#include <termios.h>

#include <cstdint>
#include <optional>

#include "base/result.h"

namespace cloister::os {

struct WindowSize {
    int64_t cols = 80;
    int64_t rows = 24;
};
// Of the terminal on standard output or standard input.
std::optional<WindowSize> window_size();

class RawTerminal {
  public:
    // FailedPrecondition if standard input is no terminal.
    static Result<RawTerminal> enter();
    RawTerminal(RawTerminal&& other) noexcept;
    RawTerminal& operator=(RawTerminal&&) = delete;
    ~RawTerminal();

  private:
    explicit RawTerminal(const termios& before) : before_(before) {}
    std::optional<termios> before_;
};

}  // namespace cloister::os
