#include "programs/sudo/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/limits.h"

namespace cloister::sudo {
namespace {

constexpr std::array kSecurePath = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                    "/usr/bin",        "/sbin",          "/bin"};

// Kept of the caller's environment, as Debian's sudo does: how to show and to sort.
constexpr std::array kKept = {"COLORTERM", "DISPLAY", "LANG", "LANGUAGE", "LINGUAS",
                              "LS_COLORS", "PS1",     "PS2",  "TERM",     "TZ"};
constexpr std::string_view kKeptPrefix = "LC_";

struct Account {
    std::string name, home;
};

Account account_of(uid_t uid) {
    return uid == 0 ? Account{"root", "/root"} : Account{"user", "/home/user"};
}

uid_t uid_of(RootIdentity identity) {
    return identity == RootIdentity::Root ? 0 : limits::kUserId;
}

std::string secure_path() {
    std::string path;
    for (const char* directory : kSecurePath)
        path += (path.empty() ? "" : ":") + std::string(directory);
    return path;
}

bool is_kept(const CommandLine& line, const std::string& name) {
    if (line.environment == Environment::Kept) return true;
    if (std::ranges::find(line.kept, name) != line.kept.end()) return true;
    return name.starts_with(kKeptPrefix) || std::ranges::find(kKept, name) != kKept.end();
}

std::string shell_of(const Executable& executable) {
    return executable("/bin/bash") ? "/bin/bash" : "/bin/sh";
}

// For a shell's -c: every character that could mean something to it is escaped.
std::string quoted(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) {
        if (!text.empty()) text += ' ';
        if (word.empty()) text += "''";
        for (const char c : word) {
            const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                               (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '$' ||
                               (static_cast<unsigned char>(c) & 0x80) != 0;
            if (!plain) text += '\\';
            text += c;
        }
    }
    return text;
}

std::vector<std::string> shell_command(const CommandLine& line, const std::string& shell) {
    std::vector<std::string> argv = {shell};
    if (line.shell == ShellKind::Login) argv.emplace_back("-l");
    if (!line.command.empty()) {
        argv.emplace_back("-c");
        argv.push_back(quoted(line.command));
    }
    return argv;
}

Result<std::vector<std::string>> found_command(const std::vector<std::string>& command,
                                               const Executable& executable) {
    std::vector<std::string> argv = command;
    if (argv[0].find('/') != std::string::npos) return argv;
    for (const char* directory : kSecurePath) {
        argv[0] = std::string(directory) + "/" + command[0];
        if (executable(argv[0])) return argv;
    }
    return make_error(ErrorKind::NotFound, command[0] + ": command not found");
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
    return text;
}

Variables environment_of(const CommandLine& line, const Caller& caller, const std::string& shell,
                         const std::vector<std::string>& argv) {
    const Account target = account_of(uid_of(line.identity));
    const bool login = line.shell == ShellKind::Login;
    Variables all;
    for (const auto& [name, value] : caller.environment) {
        if (login ? name == "TERM" : is_kept(line, name)) all[name] = value;
    }
    const bool keeps_home = line.environment == Environment::Kept &&
                            line.home == Home::AsEnvironment && !login && all.contains("HOME");
    if (!keeps_home) all["HOME"] = target.home;
    all["PATH"] = secure_path();
    all["SHELL"] = shell;
    all["USER"] = all["LOGNAME"] = target.name;
    all["MAIL"] = "/var/mail/" + target.name;
    all["SUDO_COMMAND"] = joined(argv);
    all["SUDO_USER"] = account_of(caller.uid).name;
    all["SUDO_UID"] = all["SUDO_GID"] = std::to_string(caller.uid);
    for (const auto& [name, value] : line.assignments) all[name] = value;
    return all;
}

}  // namespace

Result<RootRequest> request_of(const CommandLine& line, const Caller& caller,
                               const Executable& executable) {
    RootRequest request{.identity = line.identity, .cwd = caller.cwd};
    if (line.task != Task::Run) return request;
    const std::string shell = shell_of(executable);
    if (line.shell == ShellKind::None) {
        request.argv = TRY(found_command(line.command, executable));
    } else {
        request.argv = shell_command(line, shell);
    }
    if (line.shell == ShellKind::Login) request.cwd = account_of(uid_of(line.identity)).home;
    for (const auto& [name, value] : environment_of(line, caller, shell, request.argv)) {
        request.env.push_back(fmt::format("{}={}", name, value));
    }
    return request;
}

}  // namespace cloister::sudo
