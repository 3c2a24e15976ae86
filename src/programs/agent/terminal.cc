#include "programs/agent/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

namespace cloister::agent {
namespace {

constexpr gid_t kTtyGroup = 5;
constexpr mode_t kTtyMode = 0620;

// Programs that take the whole screen enter the alternate one with these, and leave it with `l`.
constexpr std::array<std::string_view, 3> kAlternate = {"\x1b[?1049", "\x1b[?1047", "\x1b[?47"};
constexpr size_t kSequenceMax = 8;  // with its last letter

}  // namespace

Result<void> resize_terminal(const os::Fd& ours, TerminalSize size) {
    const winsize wanted{.ws_row = size.rows, .ws_col = size.cols, .ws_xpixel = 0, .ws_ypixel = 0};
    if (::ioctl(ours.get(), TIOCSWINSZ, &wanted) != 0) return last_os_failure("resizing");
    return {};
}

Result<Terminal> open_terminal(TerminalSize size, uint32_t owner) {
    Terminal terminal;
    terminal.ours = TRY(os::open_file("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK));
    if (::unlockpt(terminal.ours.get()) != 0) return last_os_failure("unlocking a terminal");
    // Through the master and not by its name: what lies at a path is not ours to trust.
    terminal.theirs =
        os::Fd(::ioctl(terminal.ours.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!terminal.theirs.open()) return last_os_failure("opening a terminal");
    if (::fchown(terminal.theirs.get(), owner, kTtyGroup) != 0) {
        return last_os_failure("giving a terminal to its user");
    }
    if (::fchmod(terminal.theirs.get(), kTtyMode) != 0) return last_os_failure("a terminal's mode");
    TRY_OK(resize_terminal(terminal.ours, size));
    return terminal;
}

void ScreenWatch::feed(std::string_view bytes, uint64_t offset) {
    const std::string text = tail_ + std::string(bytes);
    const uint64_t begin = offset - tail_.size();
    for (const std::string_view prefix : kAlternate) {
        const size_t at = text.rfind(prefix);
        if (at == std::string::npos || at + prefix.size() >= text.size()) continue;
        const char letter = text[at + prefix.size()];
        if (letter == 'h' && !alternate_) {
            alternate_ = true;
            since_ = begin + at;
        } else if (letter == 'l') {
            alternate_ = false;
        }
    }
    tail_ = text.substr(text.size() - std::min(text.size(), kSequenceMax));
}

}  // namespace cloister::agent
