#include "programs/shell/syntax.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>

#include "base/limits.h"
#include "base/utf8.h"
#include "os/fd.h"
#include "os/memory_file.h"
#include "programs/shell/bash.h"

namespace cloister::shell {
namespace {

constexpr size_t kWordsMax = 64 * limits::kKiB;

[[noreturn]] void parse_only(const std::string& bash, const os::Fd& code, const os::Fd& words) {
    ::dup2(code.get(), 0);
    ::dup2(words.get(), 2);
    // English words, and no BASH_ENV.
    const std::vector<std::string> env = {"LC_ALL=C"};
    // Code that switches `extglob` on before it uses it is no error.
    execute_bash(bash, {"bash", "-n", "-O", "extglob"}, &env);
}

// "bash: line 3: TEXT" → 3, TEXT
std::optional<SyntaxError> numbered(std::string_view line) {
    constexpr std::string_view kBefore = "line ";
    const size_t at = line.find(kBefore);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view rest = line.substr(at + kBefore.size());
    SyntaxError error;
    const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), error.line);
    const auto behind = rest.substr(static_cast<size_t>(parsed.ptr - rest.data()));
    if (parsed.ec != std::errc() || !behind.starts_with(": ")) return std::nullopt;
    error.message = behind.substr(2);
    return error;
}

}  // namespace

std::optional<SyntaxError> syntax_error_in(std::string_view words) {
    std::optional<SyntaxError> found;
    std::vector<std::string> lines;
    while (!words.empty()) {
        const std::string_view line = words.substr(0, words.find('\n'));
        words.remove_prefix(std::min(words.size(), line.size() + 1));
        const auto error = numbered(line);
        // A here-document without its end is only warned about, and runs.
        if (error && error->message.starts_with("warning: ")) continue;
        if (error && !found) found = error;
        lines.emplace_back(line);
    }
    if (found) found->lines = std::move(lines);
    return found;
}

std::optional<SyntaxError> find_syntax_error(const std::string& bash, std::string_view code) {
    const auto file = os::make_sealed_file("code", code);
    auto pipe = os::make_pipe();
    if (!file || !pipe) return std::nullopt;
    const pid_t pid = ::fork();
    if (pid < 0) return std::nullopt;
    if (pid == 0) parse_only(bash, *file, pipe->write);
    pipe->write.reset();
    const auto words = os::read_all(pipe->read, kWordsMax);
    ::kill(pid, SIGKILL);  // it has nothing more to say, or says too much
    ::waitpid(pid, nullptr, 0);
    return words ? syntax_error_in(to_utf8(*words)) : std::nullopt;
}

}  // namespace cloister::shell
