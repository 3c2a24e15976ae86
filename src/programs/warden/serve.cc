#include "programs/warden/serve.h"

#include <csignal>

#include "base/log.h"
#include "base/time.h"
#include "programs/warden/door.h"
#include "wire/capabilities.h"
#include "wire/layout.h"

namespace cloister::warden {
namespace {

constexpr int64_t kStopTimeoutMs = 30'000;

bool asks_to_stop(int signal) {
    return signal == SIGTERM || signal == SIGINT;
}

// Polls until `over`. Returns early on an error of poll itself, which nothing can go on from.
Result<void> poll_until(os::Poller& poller, Warden& warden, const std::function<bool()>& over) {
    while (!over()) TRY_OK(poller.wait(warden.check_deadlines()));
    return {};
}

Result<void> stop(os::Poller& poller, Warden& warden, Door& door) {
    log_info("stopping");
    const int64_t deadline = steady_ms() + kStopTimeoutMs;
    door.close();
    warden.stop();
    while (!warden.stopped() && steady_ms() < deadline) TRY_OK(poller.wait(100));
    if (warden.stopped()) return {};
    return make_error(ErrorKind::DeadlineExceeded,
                      "some sandboxes could not be removed; the next start tries again");
}

}  // namespace

Result<void> serve(const HostOptions& options) {
    std::signal(SIGPIPE, SIG_IGN);
    const os::Fd signals = TRY(os::make_signal_fd({SIGCHLD, SIGTERM, SIGINT}));
    OpenHost host = TRY(open_host(options));
    auto met =
        check_required(options.require_limits, {.enforced = host.host.enforced,
                                                .oom_kill = static_cast<OomKill>(host.oom_kill),
                                                .quick_moves = host.quick_moves.open()});
    if (!met) {
        (void)close_host(host);  // what the configuration lacks is the reason to tell
        return met;
    }
    os::Poller poller;
    Warden warden(poller, host.host, host.tools, host.journal);
    warden.adopt(std::move(host.recovered));
    Door door(poller, TRY(Door::listen(host.host)), host, warden);
    bool stop_asked = false;
    poller.watch(signals, [&] {
        while (const int signal = os::take_signal(signals))
            stop_asked = stop_asked || asks_to_stop(signal);
        while (os::reap_one()) continue;  // helpers and nests: their descriptors tell more
    });
    log_info("serving", {{"base_template", host.templates[0]}, {"runtime", host.host.runtime}});
    TRY_OK(poll_until(poller, warden, [&] { return stop_asked; }));
    TRY_OK(stop(poller, warden, door));
    os::reap_all();
    return close_host(host);
}

}  // namespace cloister::warden
