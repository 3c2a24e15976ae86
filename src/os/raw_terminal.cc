#include "os/raw_terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/process_limits.h"

namespace cloister::os {

std::optional<WindowSize> window_size() {
    for (const int fd : {STDOUT_FILENO, STDIN_FILENO}) {
        winsize size{};
        if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) continue;
        return WindowSize{.cols = std::min<int64_t>(size.ws_col, limits::kTerminalSizeMax),
                          .rows = std::min<int64_t>(size.ws_row, limits::kTerminalSizeMax)};
    }
    return std::nullopt;
}

Result<RawTerminal> RawTerminal::enter() {
    termios before{};
    if (::tcgetattr(STDIN_FILENO, &before) != 0) {
        return make_error(ErrorKind::FailedPrecondition, "standard input is no terminal");
    }
    termios raw = before;
    ::cfmakeraw(&raw);
    if (::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) != 0) return last_os_failure("raw mode");
    return RawTerminal(before);
}

RawTerminal::RawTerminal(RawTerminal&& other) noexcept
    : before_(std::exchange(other.before_, std::nullopt)) {}

RawTerminal::~RawTerminal() {
    if (before_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &*before_);
}

}  // namespace cloister::os
