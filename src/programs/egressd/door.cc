#include "programs/egressd/door.h"

#include <unistd.h>

#include <utility>

#include "base/log.h"
#include "egress/policy_json.h"
#include "os/net.h"
#include "os/socket.h"

namespace cloister::egressd {
namespace {

constexpr size_t kReadMost = 64 * 1024;
constexpr size_t kQueueMax = 10'000;  // messages for a cloisterd that does not read
constexpr int kBacklog = 4;
constexpr uint16_t kDnsPort = 53;

json::object record_json(const Record& record) {
    return {{"id", record.id},       {"sandbox", record.sandbox},
            {"at_ms", record.at_ms}, {"protocol", record.protocol},
            {"name", record.name},   {"address", record.address},
            {"port", record.port},   {"verdict", record.verdict},
            {"rule", record.rule}};
}

json::object end_json(const RecordEnd& end) {
    return {{"id", end.id},
            {"sandbox", end.sandbox},
            {"sent", end.sent},
            {"received", end.received},
            {"duration_ms", end.duration_ms},
            {"reason", end.reason}};
}

std::vector<Endpoint> host_servers() {
    constexpr size_t kFileMax = 64 * 1024;
    const auto text = os::read_file("/etc/resolv.conf", kFileMax);
    return text ? servers_of(*text) : std::vector<Endpoint>();
}

std::vector<std::string> texts_of(const json::object& message, std::string_view name) {
    std::vector<std::string> out;
    const json::value* list = message.if_contains(name);
    if (list == nullptr || !list->is_array()) return out;
    for (const json::value& one : list->as_array()) {
        if (one.is_string()) out.emplace_back(one.as_string());
    }
    return out;
}

std::string text_of(const json::object& message, std::string_view name) {
    const json::value* found = message.if_contains(name);
    return found != nullptr && found->is_string() ? std::string(found->as_string()) : "";
}

}  // namespace

Door::Door() : shared_(std::make_shared<Shared>()) {
    shared_->resolver = std::make_shared<Resolver>(host_servers());
    shared_->tell = [this](const Record& record) { send({{"event", record_json(record)}}); };
    shared_->tell_end = [this](const RecordEnd& end) { send({{"end", end_json(end)}}); };
}

Result<std::shared_ptr<Door>> Door::open(const std::string& socket) {
    std::shared_ptr<Door> door(new Door);
    os::Fd listener = TRY(os::listen_unix(socket, os::SocketKind::Stream, kBacklog));
    Descriptor io = TRY(Descriptor::adopt(std::move(listener)));
    door->listener_ = std::make_shared<Descriptor>(std::move(io));
    TRY_OK(door->configure({}));
    return door;
}

Task<void> Door::serve(std::shared_ptr<Door> self) {
    for (;;) {
        auto accepted = os::accept_connection(self->listener_->fd());
        if (!accepted) {
            log_error("nobody can be let in", {{"error", accepted.error().message}});
            co_return;
        }
        std::optional<os::Fd> waiting = std::move(*accepted);
        if (!waiting) {
            if (!co_await self->listener_->readable()) co_return;
            continue;
        }
        const auto peer = os::peer_of(*waiting);
        if (!peer || (peer->uid != ::geteuid() && peer->uid != 0)) continue;
        auto stream = UnixStream::adopt(std::move(*waiting));
        if (!stream) continue;
        if (self->stream_) self->stream_->close();
        self->fds_.clear();
        self->outgoing_.clear();
        self->stream_ = std::make_shared<UnixStream>(std::move(*stream));
        spawn(converse(self, self->stream_));
    }
}

Task<void> Door::converse(std::shared_ptr<Door> self, std::shared_ptr<UnixStream> stream) {
    FrameDecoder decoder;
    for (;;) {
        auto received = co_await stream->receive(kReadMost);
        if (self->stream_ != stream) co_return;
        if (!received || received->bytes.empty()) break;
        for (os::Fd& fd : received->fds) self->fds_.push_back(std::move(fd));
        decoder.feed(received->bytes);
        Result<void> good;
        while (good) {
            auto frame = decoder.next();
            if (!frame) good = std::move(frame).error();
            if (!good || !*frame) break;
            good = self->take((*frame)->payload);
        }
        if (good) continue;
        log_error("cloisterd said what cannot be read", {{"error", good.error().message}});
        break;
    }
    stream->close();
    self->stream_.reset();
    self->outgoing_.clear();
}

Result<void> Door::take(std::string_view message) {
    const json::object object = TRY(parse_object(message));
    const json::value* tag = object.if_contains("tag");
    if (tag == nullptr || !tag->is_number())
        return make_error(ErrorKind::InvalidArgument, "a message without a tag");
    json::object answer{{"tag", *tag}};
    const auto done = handle(text_of(object, "op"), object, answer);
    if (!done) {
        answer["error"] = done.error().message;
        answer["kind"] = to_string(done.error().kind);
    }
    send(answer);
    return {};
}

Result<void> Door::handle(const std::string& op, const json::object& message,
                          json::object& answer) {
    const std::string sandbox = text_of(message, "sandbox");
    if (op == "configure") return configure(message);
    if (op == "attach") return attach(sandbox, message);
    if (op == "policy") return set_policy(sandbox, message);
    if (op == "keep") keep(message, answer);
    if (op == "detach") detach(sandbox);
    return {};
}

Result<void> Door::configure(const json::object& message) {
    auto allow = texts_of(message, "platform_allow");
    const auto addresses = TRY(os::host_addresses());
    auto platform = TRY(egress::Platform::create(allow, addresses));
    shared_->platform = std::make_shared<const egress::Platform>(std::move(platform));
    platform_allow_ = std::move(allow);
    std::vector<Endpoint> servers;
    for (const std::string& text : texts_of(message, "dns_servers")) {
        const auto address = parse_address(text);
        if (address) servers.push_back({*address, kDnsPort});
    }
    if (servers.empty()) servers = host_servers();
    shared_->resolver = std::make_shared<Resolver>(std::move(servers));
    const std::string upstream = text_of(message, "upstream_proxy");
    shared_->upstream.reset();
    if (!upstream.empty()) shared_->upstream = TRY(egress::parse_upstream(upstream));
    return {};
}

Result<egress::PolicyStack> Door::policies_of(const json::object& message) const {
    std::vector<std::shared_ptr<const egress::Policy>> policies;
    const json::value* list = message.if_contains("policies");
    if (list == nullptr || !list->is_array() || list->as_array().empty())
        return make_error(ErrorKind::InvalidArgument, "no policies");
    for (const json::value& one : list->as_array()) {
        if (!one.is_object())
            return make_error(ErrorKind::InvalidArgument, "a policy is no object");
        const egress::PolicySpec spec = TRY(egress::policy_from(one.as_object(), ""));
        auto policy = TRY(egress::Policy::create(spec, shared_->platform));
        policies.push_back(std::make_shared<const egress::Policy>(std::move(policy)));
    }
    return egress::PolicyStack(std::move(policies));
}

Result<void> Door::attach(const std::string& sandbox, const json::object& message) {
    const json::value* count = message.if_contains("fds");
    const int64_t wanted = count != nullptr && count->is_int64() ? count->as_int64() : 0;
    std::vector<os::Fd> path;
    while (!fds_.empty() && static_cast<int64_t>(path.size()) < wanted) {
        path.push_back(std::move(fds_.front()));
        fds_.pop_front();
    }
    egress::PolicyStack policy = TRY(policies_of(message));
    auto& net = sandboxes_[sandbox];
    if (!net) net = std::make_shared<SandboxNet>(shared_, sandbox);
    net->set_policy(std::move(policy));
    return net->open(std::move(path));
}

Result<void> Door::set_policy(const std::string& sandbox, const json::object& message) {
    const auto found = sandboxes_.find(sandbox);
    if (found == sandboxes_.end())
        return make_error(ErrorKind::NotFound, "egress has no such sandbox");
    found->second->set_policy(TRY(policies_of(message)));
    return {};
}

void Door::keep(const json::object& message, json::object& answer) {
    const auto wanted = texts_of(message, "sandboxes");
    const std::set<std::string> kept(wanted.begin(), wanted.end());
    json::array there;
    for (auto next = sandboxes_.begin(); next != sandboxes_.end();) {
        const std::string id = (next++)->first;
        if (kept.contains(id)) {
            there.emplace_back(id);
        } else {
            detach(id);
        }
    }
    answer["sandboxes"] = std::move(there);
}

void Door::detach(const std::string& sandbox) {
    const auto found = sandboxes_.find(sandbox);
    if (found == sandboxes_.end()) return;
    found->second->close();
    sandboxes_.erase(found);
}

void Door::close() {
    listener_->close();
    if (stream_) stream_->close();
    for (const auto& [id, net] : std::exchange(sandboxes_, {})) net->close();
}

void Door::send(const json::object& message) {
    if (!stream_ || outgoing_.size() >= kQueueMax) return;
    std::string frame;
    append_frame(frame, FrameKind::Json, json::serialize(message));
    outgoing_.push_back(std::move(frame));
    if (!std::exchange(sending_, true)) spawn(send_queued(shared_from_this()));
}

Task<void> Door::send_queued(std::shared_ptr<Door> self) {
    while (self->stream_ && !self->outgoing_.empty()) {
        const std::shared_ptr<UnixStream> stream = self->stream_;
        std::string frame = std::move(self->outgoing_.front());
        self->outgoing_.pop_front();
        const auto sent = co_await stream->write(std::move(frame));
        if (!sent) stream->close();
        if (!sent && self->stream_ == stream) break;
    }
    self->sending_ = false;
}

}  // namespace cloister::egressd
