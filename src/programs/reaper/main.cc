// cloister-reaper: pid 1 of a nest. It forks a short-lived process for each sandbox that the warden
// asks for, reaps whatever dies in the nest, and reports who was born and who died. It keeps no
// table and reads no file.
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
#include "jail/nest_protocol.h"
#include "jail/nest_root.h"
#include "jail/spawn.h"
#include "jail/stage.h"
#include "os/fd.h"
#include "os/process.h"
#include "os/socket.h"

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

void reap(const Warden& warden) {
    while (const auto end = os::reap_one()) {
        const NestReport report{.kind = NestReport::Ended,
                                .pid = end->pid,
                                .exit_code = end->exit_code,
                                .signal = end->signal};
        // Without a warden nobody needs to know; the next one looks at the processes themselves.
        (void)send_report(warden, report, {});
    }
}

std::optional<Spawn> decode(os::Received message, const std::string& base_filter, int warden) {
    Spawn spawn{
        .order = {}, .fds = std::move(message.fds), .base_filter = base_filter, .warden = warden};
    if (message.bytes.size() != sizeof(spawn.order)) return std::nullopt;
    std::memcpy(&spawn.order, message.bytes.data(), sizeof(spawn.order));
    if (!well_formed(spawn)) return std::nullopt;
    return spawn;
}

// False when the warden is gone.
bool serve_one(const os::Fd& connection, const std::string& base_filter) {
    auto message = os::receive_with_fds(connection, sizeof(SpawnOrder));
    if (!message || message->bytes.empty()) return false;
    const auto spawn = decode(std::move(*message), base_filter, connection.get());
    if (!spawn) {
        log_error("a malformed order");
        return true;
    }
    const pid_t child = ::fork();
    if (child == 0) spawn_sandbox(*spawn);
    if (child < 0) {
        const StageReport report{.stage = Stage::Fork, .error_number = errno};
        (void)os::write_all(spawn->fds[kOrderReady],
                            {reinterpret_cast<const char*>(&report), sizeof(report)});
    }
    return true;
}

struct Door {
    os::Fd signals, listener, log;
};

void serve(const Door& door, const std::string& base_filter) {
    Warden warden;
    // poll skips negative descriptors: at first there is no connection.
    std::array<pollfd, 3> polled = {
        pollfd{.fd = door.signals.get(), .events = POLLIN, .revents = 0},
        pollfd{.fd = door.listener.get(), .events = POLLIN, .revents = 0},
        pollfd{.fd = -1, .events = POLLIN, .revents = 0}};
    for (;;) {
        if (::poll(polled.data(), polled.size(), -1) < 0) continue;
        if (polled[0].revents != 0) {
            while (os::take_signal(door.signals) != 0) continue;
            reap(warden);
        }
        if (polled[2].revents != 0 && !serve_one(warden.connection, base_filter)) polled[2].fd = -1;
        if (polled[1].revents == 0) continue;
        const bool welcomed = welcome(warden, door.listener, door.log).has_value();
        polled[2].fd = welcomed ? warden.connection.get() : -1;
    }
}

Result<void> run() {
    Door door{.signals = {}, .listener = os::Fd(kReaperListener), .log = os::Fd(kReaperLog)};
    const os::Fd base_filter_file(kReaperBaseFilter);
    std::signal(SIGPIPE, SIG_IGN);
    ::prctl(PR_SET_NAME,
            "cloister-reaper");  // executed from memory, it would be called by a number
    door.signals = TRY(os::make_signal_fd({SIGCHLD}));
    const std::string base_filter = TRY(os::read_all(base_filter_file, kFilterMax));
    TRY_OK(enter_nest_root());
    TRY_OK(keep_mapping_rights_only());
    serve(door, base_filter);
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
