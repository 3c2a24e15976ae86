// What people type behind `sudo`, as far as it has a meaning in a sandbox: nobody has a password
// here, and there are two users to be.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "wire/root_command.h"

namespace cloister::sudo {

enum class Task {
    Run,      // a command, or a shell
    Ask,      // -v: may I?
    List,     // -l: what may I?
    Nothing,  // -k: forget a password that nobody asked for
    Help,
    Version,
};
enum class ShellKind { None, Plain, Login };  // -s, -i
enum class Environment { Fresh, Kept };       // -E
enum class Home { AsEnvironment, OfTarget };  // -H

struct CommandLine {
    Task task = Task::Run;
    RootIdentity identity = RootIdentity::Root;
    ShellKind shell = ShellKind::None;
    Environment environment = Environment::Fresh;
    Home home = Home::AsEnvironment;
    std::vector<std::string> kept;                                 // --preserve-env=A,B
    std::vector<std::pair<std::string, std::string>> assignments;  // NAME=VALUE before the command
    std::vector<std::string> command;
};

// `words` without the program's own name. InvalidArgument names the word that is not understood.
Result<CommandLine> parse_command_line(const std::vector<std::string>& words);

inline constexpr std::string_view kHelp =
    "usage: sudo [-EHnS] [-u root|user] [NAME=VALUE…] command…\n"
    "       sudo -i | -s [command…]\n"
    "       sudo -l | -v | -k\n"
    "Starts a command as root of this sandbox, or as its user. No password is needed.\n";

}  // namespace cloister::sudo
