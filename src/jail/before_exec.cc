#include "jail/before_exec.h"

#include <csignal>

#include "os/privileges.h"

namespace cloister::jail {

void load_birth_filter(Steps& steps, const char* filter, size_t bytes) {
    steps.at(Stage::Filter);
    const int failed = os::load_filter(filter, bytes);
    if (failed != 0) steps.fail(failed);
}

void reset_signals() {
    std::signal(SIGPIPE, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace cloister::jail
