#include "os/short_turns.h"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace cloister::os {
namespace {

// The shortest that the kernel takes (its slices of SCHED_OTHER lie between 0.1 and 100 ms).
constexpr uint64_t kTurnNs = 100'000;

}  // namespace

void ask_for_short_turns() {
    sched_attr attributes = {};
    attributes.size = sizeof(attributes);
    attributes.sched_policy = SCHED_NORMAL;
    attributes.sched_flags = SCHED_FLAG_RESET_ON_FORK;
    attributes.sched_nice = ::getpriority(PRIO_PROCESS, 0);
    attributes.sched_runtime = kTurnNs;
    ::syscall(SYS_sched_setattr, 0, &attributes, 0);  // a wish: whoever refuses it changes nothing
}

}  // namespace cloister::os
