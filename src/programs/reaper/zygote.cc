#include "programs/reaper/zygote.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "base/log.h"
#include "jail/stage.h"
#include "wire/fork_order.h"

namespace cloister::jail {

Result<Zygote> Zygote::create(Filters filters) {
    os::SocketPair orders = TRY(os::make_socket_pair(os::SocketKind::SeqPacket));
    TRY_OK(os::set_blocking(orders.ours, os::Blocking::No));
    TRY_OK(os::set_blocking(orders.theirs, os::Blocking::No));
    return Zygote(std::move(filters), std::move(orders));
}

Result<void> Zygote::start(os::Received message) {
    if (pid_ > 0) return {};
    os::SocketPair pair = TRY(os::make_socket_pair(os::SocketKind::SeqPacket));
    TRY_OK(os::set_blocking(pair.ours, os::Blocking::No));
    ZygoteBirth birth{.order = {},
                      .fds = std::move(message.fds),
                      .filter = filters_.own,
                      .forked_filter = filters_.forked,
                      .requests = pair.theirs};
    std::memcpy(&birth.order, message.bytes.data(), sizeof(birth.order));
    if (!well_formed(birth)) return make_error(ErrorKind::Internal, "a malformed order");
    const pid_t child = ::fork();
    if (child == 0) zygote_init(birth);
    if (child < 0) return last_os_failure("forking the zygote");
    pid_ = child;
    socket_ = std::move(pair.ours);
    return {};
}

void Zygote::forward() {
    // Of an order that is dropped, all descriptors close here.
    auto order = os::receive_with_fds(orders_.ours, sizeof(forking::Order));
    // An agent that shut its end down did it for all of the nest: interpreters are started then.
    if (order && order->bytes.empty()) orders_.ours.reset();
    if (!order || order->bytes.empty() || !ready_) return;
    std::vector<int> fds;
    for (const os::Fd& fd : order->fds) fds.push_back(fd.get());
    // A zygote that cannot take it is as good as none.
    (void)os::send_with_fds(socket_, order->bytes, fds);
}

void Zygote::hear() {
    StageReport report;
    const ssize_t got = ::recv(socket_.get(), &report, sizeof(report), MSG_DONTWAIT);
    if (got == 1) {
        ready_ = true;
    } else if (got == sizeof(report)) {
        log_error("the zygote could not start", {{"error", stage_failure(report).message}});
    } else if (got == 0) {
        ready_ = false;
        socket_.reset();
    }
}

bool Zygote::on_child_end(pid_t pid) {
    if (pid != pid_) return false;
    pid_ = -1;
    ready_ = false;
    socket_.reset();  // with what it had not taken yet
    return true;
}

}  // namespace cloister::jail
