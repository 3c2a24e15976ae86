// What a person sees: colours only where they belong, no control characters from outside, a word
// when it takes long.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/error.h"

namespace cloister::cli {

// A line on standard error, "cloister: …".
void say(std::string_view text);
// The same for an error; answers its exit code.
int say_error(const Error& error);
// A line on standard output.
void print(std::string_view line);

// `text` in red if standard error is a terminal that wants colours (NO_COLOR is not set).
std::string red(std::string_view text);
// One line that cannot steer the terminal: control characters become "?".
std::string printable(std::string_view text);
// "3 B", "1.2 KB", "142 MB"
std::string size_text(uint64_t bytes);

// While it lives: on a terminal, says `what` after a second, and wipes it away at the end.
class Progress {
  public:
    explicit Progress(std::string what);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

  private:
    void show_if_slow();

    std::string what_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool done_ = false;
    std::thread thread_;
};

}  // namespace cloister::cli
