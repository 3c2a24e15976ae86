#include "engine/warden_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/time.h"
#include "os/socket.h"

namespace cloister::engine {
namespace {

constexpr std::chrono::milliseconds kFirstPause{20};
constexpr std::chrono::milliseconds kLongestPause{1'000};
constexpr int64_t kConnectWaitMs = 5'000;

Error not_there() {
    return make_error(
        ErrorKind::Unavailable,
        "the part of the service that makes sandboxes is not there: try again in a moment");
}

Result<UnixStream> connect_to(const std::string& path) {
    os::Fd socket = TRY(os::connect_unix(path, os::SocketKind::SeqPacket));
    return UnixStream::adopt(std::move(socket));
}

// Whether this reply is the last one of its request.
bool ends(const warden::Reply& reply) {
    const auto* listed = std::get_if<warden::ListReply>(&reply);
    return listed == nullptr || listed->last != 0;
}

}  // namespace

WardenClient::WardenClient(std::string socket_path, int64_t timeout_ms)
    : socket_path_(std::move(socket_path)), timeout_ms_(timeout_ms) {}

void WardenClient::start() {
    spawn(keep_connected(shared_from_this()));
}

void WardenClient::stop() {
    stopped_ = true;
    on_ended_ = nullptr;
    on_connected_ = nullptr;
    if (stream_) stream_->close();
}

Task<void> WardenClient::keep_connected(std::shared_ptr<WardenClient> self) {
    std::chrono::milliseconds pause = kFirstPause;
    while (!self->stopped_) {
        Result<UnixStream> stream = connect_to(self->socket_path_);
        if (stream) {
            pause = kFirstPause;
            self->stream_ = std::make_shared<UnixStream>(std::move(*stream));
            spawn(announce(self));
            co_await self->read_until_broken();
            self->stream_.reset();
            self->known_ = false;
            self->fail_all();
        }
        co_await sleep_for(pause);
        pause = std::min(pause * 2, kLongestPause);
    }
}

Task<void> WardenClient::announce(std::shared_ptr<WardenClient> self) {
    const Result<warden::HelloReply> facts = co_await self->hello();
    if (!facts) {
        log_warn("the warden does not answer", {{"error", facts.error().message}});
        co_return;
    }
    self->known_ = true;
    self->became_known_.notify_all();
    if (self->on_connected_) self->on_connected_();
}

Task<Result<void>> WardenClient::connected() {
    const auto self = shared_from_this();
    const int64_t give_up = steady_ms() + std::min(kConnectWaitMs, timeout_ms_);
    while (!known_ && !stopped_ && steady_ms() < give_up) {
        co_await became_known_.wait_for(std::chrono::milliseconds(give_up - steady_ms()));
    }
    if (!known_) co_return not_there();
    co_return Result<void>{};
}

Task<void> WardenClient::read_until_broken() {
    const std::shared_ptr<UnixStream> stream = stream_;
    for (;;) {
        Result<os::Received> message = co_await stream->receive(limits::kWardenMessageMax);
        if (!message || message->bytes.empty()) co_return;
        const Result<warden::Reply> reply = warden::decode_reply(message->bytes);
        if (!reply) {
            log_error("the warden sent what is no reply", {{"error", reply.error().message}});
            co_return;
        }
        take(*reply, std::move(message->fds));
    }
}

void WardenClient::take(const warden::Reply& reply, std::vector<os::Fd> fds) {
    if (const auto* ended = std::get_if<warden::EndedEvent>(&reply)) {
        if (on_ended_) on_ended_(std::string(ended->sandbox.view()));
        return;
    }
    const uint64_t tag = std::visit(
        [](const auto& body) -> uint64_t {
            if constexpr (requires { body.tag; }) return body.tag;
            return 0;
        },
        reply);
    const auto found = pending_.find(tag);
    if (found == pending_.end()) return;  // its request has timed out
    found->second->fds = std::move(fds);
    if (const auto* done = std::get_if<warden::DoneReply>(&reply)) {
        finish(tag, warden::result_of(*done));
        return;
    }
    found->second->replies.push_back(reply);
    if (ends(reply)) finish(tag, {});
}

void WardenClient::finish(uint64_t tag, Result<void> end) {
    const auto found = pending_.find(tag);
    found->second->end = std::move(end);
    found->second->changed.notify_all();
    pending_.erase(found);
}

void WardenClient::fail_all() {
    outgoing_.clear();
    while (!pending_.empty()) finish(pending_.begin()->first, not_there());
}

Task<Result<std::vector<warden::Reply>>> WardenClient::ask(uint64_t tag, std::string message) {
    const auto pending = co_await ask_whole(tag, std::move(message));
    if (!pending) co_return pending.error();
    co_return std::move((*pending)->replies);
}

Task<Result<std::shared_ptr<WardenClient::Pending>>> WardenClient::ask_whole(uint64_t tag,
                                                                             std::string message) {
    if (!stream_) co_return not_there();
    const auto self = shared_from_this();
    const auto pending = std::make_shared<Pending>();
    pending_.emplace(tag, pending);
    outgoing_.push_back(std::move(message));
    if (!sending_) co_await send_queued();
    if (!pending->end) co_await pending->changed.wait_for(std::chrono::milliseconds(timeout_ms_));
    if (!pending->end) {
        pending_.erase(tag);
        co_return make_error(ErrorKind::DeadlineExceeded,
                             "the part of the service that makes sandboxes did not answer in time");
    }
    if (!*pending->end) co_return std::move(*pending->end).error();
    co_return pending;
}

Task<void> WardenClient::send_queued() {
    sending_ = true;
    while (stream_ && !outgoing_.empty()) {
        std::string message = std::move(outgoing_.front());
        outgoing_.pop_front();
        const std::shared_ptr<UnixStream> stream = stream_;
        const Result<void> sent = co_await stream->write(std::move(message));
        if (!sent) stream->close();  // the reader sees it, and fails every request
    }
    sending_ = false;
}

template <class T>
Task<Result<T>> WardenClient::ask_for(uint64_t tag, std::string message) {
    const auto replies = co_await ask(tag, std::move(message));
    if (!replies) co_return replies.error();
    const T* wanted = replies->empty() ? nullptr : std::get_if<T>(&replies->front());
    if (wanted == nullptr)
        co_return make_error(ErrorKind::Internal, "the warden gave another kind of answer");
    co_return *wanted;
}

Task<Result<warden::HelloReply>> WardenClient::hello() {
    const uint64_t tag = next_tag();
    const warden::HelloRequest request{.tag = tag};
    const auto facts =
        co_await ask_for<warden::HelloReply>(tag, warden::encode(warden::Request(request)));
    if (facts) templates_ = facts->templates;
    co_return facts;
}

Task<Result<void>> WardenClient::create(warden::JailPlan plan) {
    const uint64_t tag = next_tag();
    const warden::CreateRequest request{.tag = tag, .plan = plan};
    const auto replies = co_await ask(tag, warden::encode(warden::Request(request)));
    if (!replies) co_return replies.error();
    co_return Result<void>{};
}

Task<Result<void>> WardenClient::destroy(std::string sandbox) {
    const Result<warden::Id> id = warden::Id::from(sandbox);
    if (!id) co_return id.error();
    const uint64_t tag = next_tag();
    const warden::DestroyRequest request{.tag = tag, .sandbox = *id};
    const auto replies = co_await ask(tag, warden::encode(warden::Request(request)));
    if (!replies) co_return replies.error();
    co_return Result<void>{};
}

Task<Result<std::vector<std::string>>> WardenClient::list() {
    const uint64_t tag = next_tag();
    const auto replies =
        co_await ask(tag, warden::encode(warden::Request(warden::ListRequest{tag})));
    if (!replies) co_return replies.error();
    std::vector<std::string> out;
    for (const warden::Reply& reply : *replies) {
        const auto* listed = std::get_if<warden::ListReply>(&reply);
        if (listed != nullptr && listed->last == 0) out.emplace_back(listed->sandbox.view());
    }
    co_return out;
}

Task<Result<warden::UsageReply>> WardenClient::usage(std::string sandbox) {
    const Result<warden::Id> id = warden::Id::from(sandbox);
    if (!id) co_return id.error();
    const uint64_t tag = next_tag();
    const warden::UsageRequest request{.tag = tag, .sandbox = *id};
    co_return co_await ask_for<warden::UsageReply>(tag, warden::encode(warden::Request(request)));
}

Task<Result<warden::PoolReply>> WardenClient::pool() {
    const uint64_t tag = next_tag();
    const warden::PoolRequest request{.tag = tag};
    co_return co_await ask_for<warden::PoolReply>(tag, warden::encode(warden::Request(request)));
}

Task<Result<void>> WardenClient::narrow(std::string sandbox, uint64_t memory_max,
                                        uint32_t pids_max) {
    const Result<warden::Id> id = warden::Id::from(sandbox);
    if (!id) co_return id.error();
    const uint64_t tag = next_tag();
    const warden::NarrowRequest request{
        .tag = tag, .memory_max = memory_max, .sandbox = *id, .pids_max = pids_max};
    const auto replies = co_await ask(tag, warden::encode(warden::Request(request)));
    if (!replies) co_return replies.error();
    co_return Result<void>{};
}

Task<Result<std::vector<os::Fd>>> WardenClient::network(std::string sandbox,
                                                        warden::PathKind kind) {
    const Result<warden::Id> id = warden::Id::from(sandbox);
    if (!id) co_return id.error();
    const uint64_t tag = next_tag();
    const warden::NetworkRequest request{.tag = tag, .sandbox = *id, .kind = kind};
    const auto pending = co_await ask_whole(tag, warden::encode(warden::Request(request)));
    if (!pending) co_return pending.error();
    co_return std::move((*pending)->fds);
}

Task<Result<void>> WardenClient::ask_done(uint64_t tag, warden::Request request) {
    const auto replies = co_await ask(tag, warden::encode(request));
    if (!replies) co_return replies.error();
    co_return Result<void>{};
}

Task<Result<void>> WardenClient::set_frozen(std::string sandbox, uint32_t frozen) {
    const Result<warden::Id> id = warden::Id::from(sandbox);
    if (!id) co_return id.error();
    const uint64_t tag = next_tag();
    const warden::FreezeRequest request{.tag = tag, .sandbox = *id, .frozen = frozen};
    co_return co_await ask_done(tag, warden::Request(request));
}

Task<Result<void>> WardenClient::freeze(std::string sandbox) {
    co_return co_await set_frozen(std::move(sandbox), 1);
}

Task<Result<void>> WardenClient::thaw(std::string sandbox) {
    co_return co_await set_frozen(std::move(sandbox), 0);
}

Task<Result<void>> WardenClient::revive(std::string sandbox) {
    const Result<warden::Id> id = warden::Id::from(sandbox);
    if (!id) co_return id.error();
    const uint64_t tag = next_tag();
    const warden::ReviveRequest request{.tag = tag, .sandbox = *id};
    co_return co_await ask_done(tag, warden::Request(request));
}

Result<warden::Id> WardenClient::built_in_template(std::string_view name) const {
    if (!templates_) return not_there();
    const size_t place = TRY(get_built_in_template(name));
    const warden::Id& revision = (*templates_)[place];
    if (revision != warden::Id()) return revision;
    return invalid_field(
        "template",
        fmt::format(
            "the image of the template `{}` is not built on this host: run `{}` there, then "
            "start the service anew (`sudo ./dev stop`, and the next run does)",
            kBuiltInTemplates[place].name, kBuiltInTemplates[place].build));
}

}  // namespace cloister::engine
