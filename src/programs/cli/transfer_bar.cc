#include "programs/cli/transfer_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/time.h"
#include "programs/cli/terminal.h"

namespace cloister::cli {
namespace {

constexpr int64_t kEveryMs = 100;
constexpr int64_t kLongMs = 500;  // shorter ones are not worth a line
constexpr uint64_t kWidth = 24;

}  // namespace

std::string bar_text(const std::string& name, uint64_t done, std::optional<uint64_t> all,
                     int64_t ms) {
    std::string text = printable(name) + "  " + size_text(done);
    if (all && *all > 0) {
        const uint64_t marks = std::min(kWidth, kWidth * done / *all);
        text += fmt::format(" of {}  [{:<{}}]", size_text(*all), std::string(marks, '#'), kWidth);
    }
    const uint64_t per_second = done * 1000 / static_cast<uint64_t>(std::max<int64_t>(ms, 1));
    return text + fmt::format("  {}/s", size_text(per_second));
}

TransferBar::TransferBar(std::string name, std::optional<uint64_t> all)
    : name_(std::move(name)), all_(all), on_terminal_(::isatty(2) == 1), began_ms_(steady_ms()) {}

TransferBar::~TransferBar() {
    if (shown_ms_ != 0) std::fputs("\r\033[K", stderr);
}

void TransferBar::add(uint64_t bytes) {
    done_ += bytes;
    if (!on_terminal_) return;
    const int64_t now = steady_ms();
    if (now - began_ms_ < kLongMs || now - shown_ms_ < kEveryMs) return;
    shown_ms_ = now;
    const std::string text = bar_text(name_, done_, all_, now - began_ms_);
    std::fputs(("\r\033[K" + text).c_str(), stderr);
}

}  // namespace cloister::cli
