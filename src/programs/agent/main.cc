// cloister-agent: pid 1 of a sandbox. It is born with what wire/birth.h lists, and serves
// contract/agent-protocol.md until the sandbox ends.
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "os/short_turns.h"
#include "programs/agent/agent.h"

namespace {

using namespace cloister;

Result<void> serve() {
    // Nobody in the sandbox may look into this process.
    ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    // Large buffers go back to the kernel as soon as they are free: the memory of this group is
    // small.
    ::mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    // Each process and each client of one needs some; what the agent starts gets fewer again.
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)::setrlimit(RLIMIT_NOFILE, &files);  // without it fewer fit
    }
    os::ask_for_short_turns();
    agent::Birth birth = TRY(agent::take_birth());
    // A log that nobody reads must not stop the agent.
    TRY_OK(os::set_blocking(os::Fd(::dup(2)), os::Blocking::No));
    return agent::Agent(std::move(birth), {}).serve();
}

}  // namespace

int main() {
    log_open("cloister-agent", LogLevel::Info);
    const auto result = serve();
    log_error("the agent ends", {{"error", result.error().message}});
    return 1;
}
