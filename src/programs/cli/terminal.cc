#include "programs/cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>

#include "programs/cli/exit_code.h"
#include "programs/cli/settings.h"

namespace cloister::cli {
namespace {

bool is_terminal(int fd) {
    return ::isatty(fd) == 1 && environment("TERM") != "dumb";
}

void write_error(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace

void say(std::string_view text) {
    write_error(fmt::format("cloister: {}\n", text));
}

int say_error(const Error& error) {
    say(error.message);
    return exit_code_of(error.kind);
}

void print(std::string_view line) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fputc('\n', stdout);
}

std::string red(std::string_view text) {
    if (!is_terminal(STDERR_FILENO) || !environment("NO_COLOR").empty()) return std::string(text);
    return fmt::format("\x1b[31m{}\x1b[0m", text);
}

std::string printable(std::string_view text) {
    std::string out(text);
    for (char& c : out) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
    }
    return out;
}

std::string size_text(uint64_t bytes) {
    constexpr std::array<std::string_view, 5> kUnits{"B", "KB", "MB", "GB", "TB"};
    double number = static_cast<double>(bytes);
    size_t unit = 0;
    for (; number >= 1000 && unit + 1 < kUnits.size(); ++unit) number /= 1000;
    const int digits = unit > 0 && number < 10 ? 1 : 0;
    return fmt::format("{:.{}f} {}", number, digits, kUnits[unit]);
}

Progress::Progress(std::string what) : what_(std::move(what)) {
    if (is_terminal(STDERR_FILENO)) thread_ = std::thread([this] { show_if_slow(); });
}

Progress::~Progress() {
    {
        const std::lock_guard lock(mutex_);
        done_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

void Progress::show_if_slow() {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, std::chrono::seconds(1), [this] { return done_; })) return;
    write_error(fmt::format("cloister: {} …", what_));
    changed_.wait(lock, [this] { return done_; });
    write_error("\r\x1b[K");
}

}  // namespace cloister::cli
