// cloister: the command line. Each verb is a file of its own.
#include <array>
#include <csignal>
#include <string_view>

#include "os/standard.h"
#include "programs/cli/command.h"
#include "programs/cli/exit_code.h"
#include "programs/cli/terminal.h"

namespace cloister::cli {
namespace {

struct Verb {
    std::string_view name, summary;
    int (*call)(const Words&);
};

constexpr std::array<Verb, 20> kVerbs{{
    {"run", "run a program in a fresh sandbox", run_command},
    {"context", "make, list, restart and delete live interpreters", context_command},
    {"exec", "run a program in a sandbox that lives", exec_command},
    {"shell", "an interactive shell in a sandbox", shell_command},
    {"port", "publish ports of a sandbox, list and close them", port_command},
    {"serve", "run the service on this machine (root)", serve_command},
    {"status", "what is running", status_command},
    {"doctor", "what isolation and limits are in force, and why not more", doctor_command},
    {"stop", "stop the service (root)", stop_command},
    {"ps", "the sandboxes of this project", ps_command},
    {"pause", "stop all code of a sandbox where it is", pause_command},
    {"resume", "let a paused sandbox go on", resume_command},
    {"kill", "end sandboxes and remove their files", kill_command},
    {"cp", "copy files and directories to and from a sandbox", cp_command},
    {"ls", "list the files of a sandbox", ls_command},
    {"df", "how full the pool is, and what sandboxes hold of it", df_command},
    {"pool", "grow the pool (root)", pool_command},
    {"net", "whom a sandbox may reach, and what became of its connections", net_command},
    {"key", "create, list and revoke API keys", key_command},
    {"version", "print the version", version_command},
}};

void print_help() {
    print("usage: cloister VERB [OPTIONS]\n");
    for (const Verb& verb : kVerbs) {
        print("  " + std::string(verb.name) + std::string(10 - verb.name.size(), ' ') +
              std::string(verb.summary));
    }
    print("\n`cloister VERB --help` shows what a verb takes. Exit codes: contract/errors.md.");
}

int call_verb(const Words& words) {
    const std::string name = words.empty() ? "" : words.front();
    if (name == "--help" || name == "-h" || name == "help") {
        print_help();
        return 0;
    }
    for (const Verb& verb : kVerbs) {
        if (verb.name == name) return verb.call({words.begin() + 1, words.end()});
    }
    say(name.empty() ? "say what to do; `cloister --help` lists the verbs"
                     : "there is no verb `" + name + "`; `cloister --help` lists them");
    return kWrongUsage;
}

}  // namespace
}  // namespace cloister::cli

int main(int argc, char** argv) {
    using namespace cloister;
    if (auto ready = os::ensure_standard_descriptors(); !ready)
        return cli::say_error(ready.error());
    std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of write(), which each verb handles
    return cli::call_verb({argv + 1, argv + argc});
}
