#include "programs/warden/door.h"

#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>

#include "base/limits.h"
#include "base/log.h"
#include "os/host_facts.h"
#include "os/page_out.h"
#include "os/socket.h"
#include "wire/layout.h"

namespace cloister::warden {
namespace {

constexpr int kBacklog = 8;
constexpr int kSendBuffer = 8 << 20;  // the whole list of sandboxes fits, whatever its reader does

template <class... Functions>
struct Overloaded : Functions... {
    using Functions::operator()...;
};

CgroupMode wire_mode(os::CgroupMode mode) {
    switch (mode) {
        case os::CgroupMode::None:
            return CgroupMode::None;
        case os::CgroupMode::V1:
            return CgroupMode::V1;
        case os::CgroupMode::Hybrid:
            return CgroupMode::Hybrid;
        case os::CgroupMode::V2:
            break;
    }
    return CgroupMode::V2;
}

uint32_t pause_bits(const OpenHost& host) {
    if (!host.freezes) return 0;
    const auto freezes = static_cast<uint32_t>(Pause::Freezes);
    return os::has_swap() ? freezes | static_cast<uint32_t>(Pause::Reclaims) : freezes;
}

}  // namespace

Result<os::Fd> Door::listen(const jail::Host& host) {
    const std::string path = layout::warden_socket(host.data);
    os::Fd listener = TRY(os::listen_unix(path, os::SocketKind::SeqPacket, kBacklog));
    if (::chown(path.c_str(), host.server_uid, static_cast<gid_t>(-1)) != 0) {
        return last_os_failure("giving " + path + " to the server");
    }
    std::error_code failed;
    using std::filesystem::perms;
    std::filesystem::permissions(path, perms::owner_read | perms::owner_write, failed);
    if (failed) return os_failure("protecting " + path, failed.value());
    return listener;
}

Door::Door(os::Poller& poller, os::Fd listener, const OpenHost& host, Warden& warden)
    : poller_(poller), listener_(std::move(listener)), host_(host), warden_(warden) {
    poller_.watch(listener_, [this] { accept(); });
    warden_.on_ended([this](const EndedEvent& event) {
        // Sending may drop the connection that it is sent to.
        for (auto next = connections_.begin(); next != connections_.end();) {
            send((next++)->first, event);
        }
    });
}

void Door::close() {
    poller_.unwatch(listener_);
    listener_.reset();
    for (const auto& [connection, fd] : connections_) poller_.unwatch(fd);
}

void Door::accept() {
    auto accepted = os::accept_connection(listener_);
    if (!accepted) return;
    std::optional<os::Fd> waiting = std::move(*accepted);
    if (!waiting) return;
    os::Fd fd = std::move(*waiting);
    const auto peer = os::peer_of(fd);
    if (!peer || (peer->uid != host_.host.server_uid && peer->uid != 0)) {
        return log_warn("a stranger at the door",
                        {{"uid", peer ? std::to_string(peer->uid) : "?"}});
    }
    if (connections_.size() >= limits::kWardenConnectionsMax ||
        !os::set_send_buffer(fd, kSendBuffer)) {
        return log_warn("no room for another connection");
    }
    const uint64_t connection = next_connection_++;
    const auto [at, added] = connections_.emplace(connection, std::move(fd));
    poller_.watch(at->second, [this, connection] { readable(connection); });
}

void Door::readable(uint64_t connection) {
    const auto message =
        os::receive_with_fds(connections_.at(connection), limits::kWardenMessageMax);
    if (!message && message.error().os_error == EAGAIN) return;
    if (!message || message->bytes.empty()) return drop(connection);
    const auto request = decode_request(message->bytes);
    if (!request) {
        log_error("a request that cannot be read", {{"error", request.error().message}});
        return drop(connection);
    }
    handle(connection, *request);
}

void Door::handle(uint64_t connection, const Request& request) {
    std::visit(Overloaded{
                   [&](const HelloRequest& hello_request) {
                       send(connection, hello(hello_request.tag));
                       // What ended while this server did not listen.
                       for (const EndedEvent& event : warden_.ended()) send(connection, event);
                   },
                   [&](const CreateRequest& create) {
                       warden_.create(create.plan, answer_to(connection, create.tag));
                   },
                   [&](const DestroyRequest& destroy) {
                       warden_.destroy(destroy.sandbox, answer_to(connection, destroy.tag));
                   },
                   [&](const ListRequest& list) { send_list(connection, list.tag); },
                   [&](const UsageRequest& asked) {
                       auto usage = warden_.usage(asked.sandbox);
                       if (!usage)
                           return send(connection, done(asked.tag, std::move(usage).error()));
                       usage->tag = asked.tag;
                       send(connection, *usage);
                   },
                   [&](const FreezeRequest& wanted) {
                       warden_.freeze(wanted, answer_to(connection, wanted.tag));
                   },
                   [&](const ReviveRequest& wanted) {
                       warden_.revive(wanted.sandbox, answer_to(connection, wanted.tag));
                   },
                   [&](const NarrowRequest& wanted) { narrow(connection, wanted); },
                   [&](const NetworkRequest& wanted) { network(connection, wanted); },
                   [&](const GrowPoolRequest& grow) {
                       const auto allowed = check_root(connection);
                       if (!allowed) return answer_to(connection, grow.tag)(allowed);
                       warden_.grow_pool(grow.bytes, answer_to(connection, grow.tag));
                   },
                   [&](const PoolRequest& asked) {
                       auto reply = pool(asked.tag);
                       if (!reply) return send(connection, done(asked.tag, reply.error()));
                       send(connection, *reply);
                   },
               },
               request);
}

void Door::network(uint64_t connection, const NetworkRequest& request) {
    warden_.network(request,
                    [this, connection, tag = request.tag](const Result<std::vector<os::Fd>>& path) {
                        if (!path) return send(connection, done(tag, path.error()));
                        std::vector<int> fds;
                        for (const os::Fd& fd : *path) fds.push_back(fd.get());
                        send(connection, done(tag, {}), fds);
                    });
}

void Door::send_list(uint64_t connection, uint64_t tag) {
    for (const Id& id : warden_.list()) send(connection, ListReply{.tag = tag, .sandbox = id});
    send(connection, ListReply{.tag = tag, .sandbox = {}, .last = 1});
}

HelloReply Door::hello(uint64_t tag) const {
    HelloReply reply{
        .tag = tag,
        .cgroup_mode = static_cast<uint32_t>(wire_mode(host_.host.cgroups.layout().mode)),
        .enforced = host_.host.enforced,
        .oom_kill = host_.oom_kill,
        .landlock = os::landlock_abi(),
        .quick_moves = host_.quick_moves.open() ? 1u : 0u,
        .host_cpus = static_cast<uint32_t>(::sysconf(_SC_NPROCESSORS_ONLN)),
        .pause = pause_bits(host_),
        .host_memory = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                       static_cast<uint64_t>(::sysconf(_SC_PAGESIZE))};
    for (size_t i = 0; i < kBuiltInTemplates.size(); ++i) {
        if (const auto revision = Id::from(host_.templates[i])) reply.templates[i] = *revision;
    }
    if (const auto space = host_.host.pool.space()) {
        reply.pool_bytes = space->bytes;
        reply.pool_free = space->free;
    }
    return reply;
}

Result<PoolReply> Door::pool(uint64_t tag) const {
    const jail::PoolSpace space = TRY(host_.host.pool.space());
    return PoolReply{.tag = tag,
                     .bytes = space.bytes,
                     .free = space.free,
                     .template_bytes = TRY(host_.host.pool.template_bytes())};
}

// The server may make and end sandboxes, but not take the host's disk.
Result<void> Door::check_root(uint64_t connection) const {
    const os::Peer peer = TRY(os::peer_of(connections_.at(connection)));
    if (peer.uid == 0) return {};
    return make_error(ErrorKind::PermissionDenied, "only root may do this");
}

Answer Door::answer_to(uint64_t connection, uint64_t tag) {
    return [this, connection, tag](const Result<void>& result) {
        send(connection, done(tag, result));
    };
}

// A connection that is gone, or that does not read its answers, is dropped; its sandboxes stay.
void Door::send(uint64_t connection, const Reply& reply, const std::vector<int>& fds) {
    const auto found = connections_.find(connection);
    if (found == connections_.end()) return;
    if (!os::send_with_fds(found->second, encode(reply), fds)) drop(connection);
}

// What a connection has narrowed does not outlast it: nobody else would put it back.
void Door::drop(uint64_t connection) {
    const auto found = connections_.find(connection);
    if (found == connections_.end()) return;
    poller_.unwatch(found->second);
    connections_.erase(found);
    for (const auto& [sandbox, owner] : narrowed_) {
        if (owner == connection) warden_.narrow({.sandbox = sandbox}, [](const Result<void>&) {});
    }
    std::erase_if(narrowed_, [&](const auto& entry) { return entry.second == connection; });
}

void Door::narrow(uint64_t connection, const NarrowRequest& request) {
    if (request.memory_max != 0 || request.pids_max != 0) {
        narrowed_[request.sandbox] = connection;
    } else {
        narrowed_.erase(request.sandbox);
    }
    warden_.narrow(request, answer_to(connection, request.tag));
}

}  // namespace cloister::warden
