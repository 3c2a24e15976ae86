// cloister-reaper: pid 1 of a nest. It forks a short-lived process for each sandbox that the warden
// asks for, starts the zygote, reaps whatever dies in the nest, and reports who was born and who
// died. It keeps no table and reads no file.
//
// Its end ends the nest with everything in it: it is the first process of the nest's pid namespace.
// The end of the warden does not end it: it goes on, and serves the next one that connects.
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <vector>

#include "base/limits.h"
#include "base/log.h"
#include "jail/identity.h"
#include "jail/landlock.h"
#include "jail/nest_protocol.h"
#include "jail/nest_root.h"
#include "jail/spawn.h"
#include "jail/stage.h"
#include "os/fd.h"
#include "os/process.h"
#include "os/socket.h"
#include "programs/reaper/zygote.h"

namespace cloister::jail {
namespace {

constexpr size_t kFilterMax = 64 * limits::kKiB;

// The warden of now: the newest connection. A dead one stays until the next comes, and takes
// nothing.
struct Warden {
    os::Fd connection;
};

Result<void> send_report(const Warden& warden, const NestReport& report,
                         const std::vector<int>& fds) {
    return os::send_with_fds(warden.connection,
                             {reinterpret_cast<const char*>(&report), sizeof(report)}, fds);
}

// A warden gets the log of the nest, which its predecessor may have read before.
Result<void> welcome(Warden& warden, const os::Fd& listener, const os::Fd& log) {
    auto accepted = TRY(os::accept_connection(listener));
    if (!accepted) return {};
    warden.connection = std::move(*accepted);
    TRY_OK(os::set_blocking(warden.connection, os::Blocking::Yes));
    return send_report(warden, {.kind = NestReport::Greeting}, {log.get()});
}

void reap(const Warden& warden, Zygote& zygote) {
    while (const auto end = os::reap_one()) {
        const bool was_zygote = zygote.on_child_end(end->pid);
        const NestReport report{.kind = was_zygote ? NestReport::ZygoteEnded : NestReport::Ended,
                                .pid = end->pid,
                                .exit_code = end->exit_code,
                                .signal = end->signal};
        // Without a warden nobody needs to know; the next one looks at the processes themselves.
        (void)send_report(warden, report, {});
    }
}

struct Births {
    std::string base_filter;
    Zygote zygote;
};

std::optional<Spawn> decode(os::Received message, const Births& births, int warden) {
    Spawn spawn{.order = {},
                .fds = std::move(message.fds),
                .base_filter = births.base_filter,
                .zygote = births.zygote.orders_in().get(),
                .warden = warden};
    if (message.bytes.size() != sizeof(spawn.order)) return std::nullopt;
    std::memcpy(&spawn.order, message.bytes.data(), sizeof(spawn.order));
    if (!well_formed(spawn)) return std::nullopt;
    return spawn;
}

void spawn_one(os::Received message, const Births& births, int warden) {
    const auto spawn = decode(std::move(message), births, warden);
    if (!spawn) return log_error("a malformed order");
    const pid_t child = ::fork();
    if (child == 0) spawn_sandbox(*spawn);
    if (child < 0) {
        const StageReport report{.stage = Stage::Fork, .error_number = errno};
        (void)os::write_all(spawn->fds[kOrderReady],
                            {reinterpret_cast<const char*>(&report), sizeof(report)});
    }
}

// False when the warden is gone.
bool serve_one(const os::Fd& connection, Births& births) {
    auto message = os::receive_with_fds(connection, sizeof(SpawnOrder));
    if (!message || message->bytes.empty()) return false;
    if (message->bytes.size() != sizeof(ZygoteOrder)) {
        spawn_one(std::move(*message), births, connection.get());
        return true;
    }
    const auto started = births.zygote.start(std::move(*message));
    if (!started) log_error("no zygote", {{"error", started.error().message}});
    return true;
}

struct Door {
    os::Fd signals, listener, log;
};

void serve(const Door& door, Births& births) {
    Warden warden;
    enum { kSignals, kListener, kOrders, kZygote, kWarden };
    // poll skips negative descriptors: at first there is no connection, and no zygote.
    std::array<pollfd, 5> polled{};
    polled.fill({.fd = -1, .events = POLLIN, .revents = 0});
    polled[kSignals].fd = door.signals.get();
    polled[kListener].fd = door.listener.get();
    for (;;) {
        polled[kOrders].fd = births.zygote.orders().get();
        polled[kZygote].fd = births.zygote.socket().get();
        if (::poll(polled.data(), polled.size(), -1) < 0) continue;
        if (polled[kOrders].revents != 0) births.zygote.forward();
        if (polled[kZygote].revents != 0) births.zygote.hear();
        if (polled[kSignals].revents != 0) {
            while (os::take_signal(door.signals) != 0) continue;
            reap(warden, births.zygote);
        }
        if (polled[kWarden].revents != 0 && !serve_one(warden.connection, births))
            polled[kWarden].fd = -1;
        if (polled[kListener].revents == 0) continue;
        const bool welcomed = welcome(warden, door.listener, door.log).has_value();
        polled[kWarden].fd = welcomed ? warden.connection.get() : -1;
    }
}

Result<std::string> read_filter(int number) {
    return os::read_all(os::Fd(number), kFilterMax);
}

Result<void> run() {
    Door door{.signals = {}, .listener = os::Fd(kReaperListener), .log = os::Fd(kReaperLog)};
    std::signal(SIGPIPE, SIG_IGN);
    ::prctl(PR_SET_NAME,
            "cloister-reaper");  // executed from memory, it would be called by a number
    door.signals = TRY(os::make_signal_fd({SIGCHLD}));
    Zygote::Filters filters{.own = TRY(read_filter(kReaperZygoteFilter)),
                            .forked = TRY(read_filter(kReaperForkedFilter))};
    Births births{.base_filter = TRY(read_filter(kReaperBaseFilter)),
                  .zygote = TRY(Zygote::create(std::move(filters)))};
    TRY_OK(enter_nest_root());
    TRY_OK(load_scopes());
    TRY_OK(keep_birth_rights_only());
    serve(door, births);
    return {};
}

}  // namespace
}  // namespace cloister::jail

int main() {
    cloister::log_open("cloister-reaper", cloister::LogLevel::Info);
    const auto result = cloister::jail::run();
    if (result) return 0;
    cloister::log_error(result.error().message);
    return 1;
}
