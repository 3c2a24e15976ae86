#include "programs/agent/oom_watch.h"

#include <unistd.h>

#include "base/log.h"
#include "base/time.h"
#include "programs/agent/user_process.h"

namespace cloister::agent {
namespace {

// How long after the event the kernel may need to choose its victim, and how often it is asked.
constexpr int64_t kPatienceMs = 1'000;
constexpr int64_t kPauseMs = 5;

}  // namespace

void OomWatch::open(os::Poller& poller) {
    kills_ = meter_.oom_kills();
    if (birth_.oom_event.open()) poller.watch(birth_.oom_event, [this] { on_event(); });
}

void OomWatch::on_event() {
    uint64_t events = 0;
    (void)!::read(birth_.oom_event.get(), &events, sizeof(events));  // only to make it quiet again
    const int64_t now = steady_ms();
    give_up_ms_ = now + kPatienceMs;
    next_look_ms_ = now;
    look(now);
}

void OomWatch::look(int64_t now_ms) {
    if (!next_look_ms_ || now_ms < *next_look_ms_) return;
    const uint64_t kills = meter_.oom_kills();
    if (kills > kills_) {
        log_info("the memory limit was hit: all processes of the sandbox are killed");
        kill_everything();
        // Those that die now may be counted as well.
        kills_ = meter_.oom_kills();
    }
    next_look_ms_ = now_ms + kPauseMs;
    if (now_ms >= give_up_ms_) next_look_ms_.reset();
}

}  // namespace cloister::agent
