// cloister-shell: the driver of the language `bash`, started by cloister-agent as the sandbox's
// user with fd 3 a socket to the agent. Its only argument is the directory of its scripts.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>

#include "programs/shell/driver.h"

namespace {

using namespace cloister;

// The agent reports how an interpreter ended: as its shell did.
[[noreturn]] void end_like(const os::ChildEnd& end) {
    if (end.signal != 0) {
        std::signal(end.signal, SIG_DFL);
        ::raise(end.signal);
    }
    ::_exit(end.exit_code);
}

Result<std::optional<os::ChildEnd>> serve(const std::string& scripts) {
    const auto driver = TRY(shell::Driver::create(os::Fd(3), scripts));
    return driver->serve();
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        fmt::print(stderr, "usage: cloister-shell SCRIPTS (it is started by cloister-agent)\n");
        return 2;
    }
    const auto end = serve(argv[1]);
    if (!end) {
        fmt::print(stderr, "{}\n", end.error().message);
        return 1;
    }
    if (*end) end_like(**end);
    return 0;
}
