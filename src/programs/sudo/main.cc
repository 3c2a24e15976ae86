// sudo inside a sandbox: it has no right of its own and gains none, but asks the sandbox's agent to
// start the command as root (wire/root_command.h), and waits for its end.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "os/process.h"
#include "programs/sudo/command_line.h"
#include "programs/sudo/request.h"
#include "programs/sudo/session.h"

extern char** environ;

namespace cloister::sudo {
namespace {

Caller caller_here() {
    std::error_code gone;
    Caller caller{.uid = ::getuid(), .cwd = std::filesystem::current_path(gone)};
    if (gone) caller.cwd = "/";
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string variable = *entry;
        const size_t sign = variable.find('=');
        if (sign != std::string::npos) {
            caller.environment[variable.substr(0, sign)] = variable.substr(sign + 1);
        }
    }
    return caller;
}

bool executable(const std::string& path) {
    return ::access(path.c_str(), X_OK) == 0 && !std::filesystem::is_directory(path);
}

int complain(const std::string& message) {
    (void)std::fprintf(stderr, "sudo: %s\n", message.c_str());
    return 1;
}

int ask(const CommandLine& line, const os::Fd& signals) {
    const auto request = request_of(line, caller_here(), executable);
    if (!request) return complain(request.error().message);
    const auto reply = ask_agent(std::string(kRootSocket), *request, signals);
    if (!reply) return complain(reply.error().message);
    if (!reply->exit_code) return complain(reply->refusal);
    if (line.task == Task::List) {
        std::puts(
            "Everybody in this sandbox may run any command as root or user, without a password.");
    }
    return *reply->exit_code;
}

int run(const std::vector<std::string>& words) {
    std::signal(SIGPIPE, SIG_IGN);
    const auto line = parse_command_line(words);
    if (!line) return complain(line.error().message);
    switch (line->task) {
        case Task::Help:
            (void)std::fputs(std::string(kHelp).c_str(), stdout);
            return 0;
        case Task::Version:
            std::puts("sudo of Cloister " CLOISTER_VERSION);
            return 0;
        case Task::Nothing:
            return 0;
        case Task::Run:
        case Task::Ask:
        case Task::List:
            break;
    }
    const auto signals = os::make_signal_fd({SIGINT, SIGTERM, SIGQUIT, SIGHUP});
    if (!signals) return complain(signals.error().message);
    return ask(*line, *signals);
}

}  // namespace
}  // namespace cloister::sudo

int main(int argc, char** argv) {
    return cloister::sudo::run({argv + (argc > 0 ? 1 : 0), argv + argc});
}
