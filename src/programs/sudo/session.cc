#include "programs/sudo/session.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "base/limits.h"
#include "os/poller.h"
#include "os/process.h"
#include "os/socket.h"

namespace cloister::sudo {
namespace {

constexpr size_t kReplyMax = 4 * limits::kKiB;

// Our standard descriptors; one that is closed is given as /dev/null.
Result<std::array<os::Fd, kRootStdio>> own_stdio() {
    std::array<os::Fd, kRootStdio> stdio;
    for (size_t i = 0; i < stdio.size(); ++i) {
        stdio[i] = os::Fd(::fcntl(static_cast<int>(i), F_DUPFD_CLOEXEC, 0));
        if (!stdio[i].open()) stdio[i] = TRY(os::open_file("/dev/null", O_RDWR));
    }
    return stdio;
}

Result<void> send(const os::Fd& socket, const RootRequest& request) {
    const std::string message = TRY(encode(request));
    const auto stdio = TRY(own_stdio());
    // An agent that refuses does not read on, perhaps not even this; its reply says why.
    if (os::send_with_fds(socket, "s", {stdio[0].get(), stdio[1].get(), stdio[2].get()})) {
        (void)os::write_all(socket, message);
    }
    return {};
}

// Reads what is there of the reply; false at its end.
bool read_more(const os::Fd& socket, std::string& reply) {
    std::array<char, kReplyMax> bytes{};
    const ssize_t got = ::read(socket.get(), bytes.data(), bytes.size());
    if (got <= 0 || reply.size() > kReplyMax) return false;
    reply.append(bytes.data(), static_cast<size_t>(got));
    return true;
}

}  // namespace

Result<RootReply> ask_agent(const std::string& socket_path, const RootRequest& request,
                            const os::Fd& signals) {
    const os::Fd socket = TRY(os::connect_unix(socket_path, os::SocketKind::Stream));
    TRY_OK(send(socket, request));
    os::Poller poller;
    std::string reply;
    bool ended = false;
    poller.watch(socket, [&] { ended = !read_more(socket, reply); });
    poller.watch(signals, [&] {
        const auto number = static_cast<char>(os::take_signal(signals));
        // If nobody reads any more the reply is on its way.
        if (number != 0) (void)os::write_all(socket, {&number, 1});
    });
    while (!ended) TRY_OK(poller.wait(-1));
    return decode_root_reply(reply);
}

}  // namespace cloister::sudo
