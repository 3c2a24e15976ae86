// cloister-reaper: pid 1 of a nest. It forks a short-lived process for each sandbox that the warden
// asks for, reaps whatever dies in the nest, and reports who was born and who died. It keeps no
// table and reads no file.
//
// Its end ends the nest with everything in it: it is the first process of the nest's pid namespace.
// The end of the warden does not end it.
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

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

void report_end(const os::Fd& socket, const os::ChildEnd& end) {
    const NestReport report{.kind = NestReport::Ended,
                            .pid = end.pid,
                            .exit_code = end.exit_code,
                            .signal = end.signal};
    // Without a warden nobody needs to know; the next one asks for the processes themselves.
    (void)os::send_with_fds(socket, {reinterpret_cast<const char*>(&report), sizeof(report)}, {});
}

void reap(const os::Fd& socket) {
    while (const auto end = os::reap_one()) report_end(socket, *end);
}

std::optional<Spawn> decode(os::Received message, const std::string& base_filter) {
    Spawn spawn{.order = {}, .fds = std::move(message.fds), .base_filter = base_filter};
    if (message.bytes.size() != sizeof(spawn.order)) return std::nullopt;
    std::memcpy(&spawn.order, message.bytes.data(), sizeof(spawn.order));
    if (!well_formed(spawn)) return std::nullopt;
    return spawn;
}

// False when the warden is gone.
bool serve_one(const os::Fd& socket, const std::string& base_filter) {
    auto message = os::receive_with_fds(socket, sizeof(SpawnOrder));
    if (!message || message->bytes.empty()) return false;
    const auto spawn = decode(std::move(*message), base_filter);
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

void serve(const os::Fd& socket, const os::Fd& signals, const std::string& base_filter) {
    std::array<pollfd, 2> polled = {pollfd{.fd = signals.get(), .events = POLLIN, .revents = 0},
                                    pollfd{.fd = socket.get(), .events = POLLIN, .revents = 0}};
    for (;;) {
        if (::poll(polled.data(), polled.size(), -1) < 0) continue;
        if (polled[0].revents != 0) {
            while (os::take_signal(signals) != 0) continue;
            reap(socket);
        }
        if (polled[1].revents != 0 && !serve_one(socket, base_filter)) polled[1].fd = -1;
    }
}

Result<void> run() {
    const os::Fd socket(kReaperSocket);
    const os::Fd base_filter_file(kReaperBaseFilter);
    std::signal(SIGPIPE, SIG_IGN);
    ::prctl(PR_SET_NAME,
            "cloister-reaper");  // executed from memory, it would be called by a number
    const os::Fd signals = TRY(os::make_signal_fd({SIGCHLD}));
    const std::string base_filter = TRY(os::read_all(base_filter_file, kFilterMax));
    TRY_OK(enter_nest_root());
    TRY_OK(keep_mapping_rights_only());
    serve(socket, signals, base_filter);
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
