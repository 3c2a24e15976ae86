#include "engine/egress_client.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/log.h"
#include "base/time.h"
#include "wire/frame.h"

namespace cloister::engine {
namespace {

constexpr std::chrono::milliseconds kFirstPause{10};
constexpr std::chrono::milliseconds kLongestPause{200};
constexpr std::chrono::milliseconds kAnswerTime{10'000};
constexpr int64_t kConnectWaitMs = 5'000;
constexpr size_t kReadMost = 64 * limits::kKiB;

Error not_there() {
    return make_error(
        ErrorKind::Unavailable,
        "the part of the service that carries the network is not there: try again in a moment");
}

json::array texts(const std::vector<std::string>& list) {
    return json::array(list.begin(), list.end());
}

ErrorKind kind_from(std::string_view word) {
    for (const ErrorKind kind : {ErrorKind::InvalidArgument, ErrorKind::NotFound,
                                 ErrorKind::Unavailable, ErrorKind::ResourceExhausted}) {
        if (to_string(kind) == word) return kind;
    }
    return ErrorKind::Internal;
}

Result<json::object> answer_in(json::object message) {
    const json::value* error = message.if_contains("error");
    if (error == nullptr || !error->is_string()) return message;
    const json::value* kind = message.if_contains("kind");
    const bool named = kind != nullptr && kind->is_string();
    return make_error(named ? kind_from(std::string_view(kind->as_string())) : ErrorKind::Internal,
                      std::string(error->as_string()));
}

}  // namespace

void EgressClient::start() {
    spawn(keep_connected(shared_from_this()));
}

void EgressClient::stop() {
    stopped_ = true;
    on_connected_ = nullptr;
    on_event_ = nullptr;
    if (stream_) stream_->close();
}

Task<void> EgressClient::keep_connected(std::shared_ptr<EgressClient> self) {
    std::chrono::milliseconds pause = kFirstPause;
    while (!self->stopped_) {
        auto stream = co_await UnixStream::connect(self->socket_path_);
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

Task<void> EgressClient::announce(std::shared_ptr<EgressClient> self) {
    json::object message{{"op", "configure"},
                         {"platform_allow", texts(self->settings_.platform_allow)},
                         {"dns_servers", texts(self->settings_.dns_servers)},
                         {"upstream_proxy", self->settings_.upstream_proxy}};
    const auto done = co_await self->ask(std::move(message));
    if (!done) {
        log_warn("egress does not answer", {{"error", done.error().message}});
        co_return;
    }
    self->known_ = true;
    self->became_known_.notify_all();
    if (self->on_connected_) self->on_connected_();
}

Task<Result<void>> EgressClient::connected() {
    const auto self = shared_from_this();
    const int64_t give_up = steady_ms() + kConnectWaitMs;
    while (!known_ && !stopped_ && steady_ms() < give_up) {
        co_await became_known_.wait_for(std::chrono::milliseconds(give_up - steady_ms()));
    }
    if (!known_) co_return not_there();
    co_return Result<void>{};
}

Task<void> EgressClient::read_until_broken() {
    const std::shared_ptr<UnixStream> stream = stream_;
    FrameDecoder decoder;
    for (;;) {
        const auto bytes = co_await stream->read_some(kReadMost);
        if (!bytes || bytes->empty()) co_return;
        decoder.feed(*bytes);
        for (;;) {
            auto frame = decoder.next();
            if (!frame) co_return;
            if (!*frame) break;
            auto message = parse_object((*frame)->payload);
            if (!message) co_return;
            take(std::move(*message));
        }
    }
}

void EgressClient::take(json::object message) {
    for (const char* kind : {"event", "end"}) {
        json::value* line = message.if_contains(kind);
        if (line == nullptr || !line->is_object()) continue;
        if (on_event_) on_event_(kind, std::move(line->as_object()));
        return;
    }
    const json::value* tag = message.if_contains("tag");
    if (tag == nullptr || !tag->is_int64()) return;
    const auto found = pending_.find(tag->as_int64());
    if (found == pending_.end()) return;  // nobody waits for it any more
    found->second->end = answer_in(std::move(message));
    found->second->changed.notify_all();
    pending_.erase(found);
}

void EgressClient::fail_all() {
    outgoing_.clear();
    for (const auto& [tag, pending] : std::exchange(pending_, {})) {
        pending->end = not_there();
        pending->changed.notify_all();
    }
}

Task<Result<json::object>> EgressClient::ask(json::object message, std::vector<os::Fd> fds) {
    if (!stream_) co_return not_there();
    const auto self = shared_from_this();
    const int64_t tag = ++last_tag_;
    message["tag"] = tag;
    const auto pending = std::make_shared<Pending>();
    pending_.emplace(tag, pending);
    Outgoing outgoing;
    append_frame(outgoing.frame, FrameKind::Json, json::serialize(message));
    outgoing.fds = std::move(fds);
    outgoing_.push_back(std::move(outgoing));
    if (!std::exchange(sending_, true)) spawn(send_queued(self));
    if (!pending->end) co_await pending->changed.wait_for(kAnswerTime);
    pending_.erase(tag);
    if (!pending->end) co_return not_there();
    co_return std::move(*pending->end);
}

// Descriptors go beside the first byte of their frame.
Task<void> EgressClient::send_queued(std::shared_ptr<EgressClient> self) {
    while (self->stream_ && !self->outgoing_.empty()) {
        const std::shared_ptr<UnixStream> stream = self->stream_;
        Outgoing next = std::move(self->outgoing_.front());
        self->outgoing_.pop_front();
        std::vector<int> numbers;
        for (const os::Fd& fd : next.fds) numbers.push_back(fd.get());
        Result<void> sent;
        if (!numbers.empty()) {
            sent = co_await stream->send(next.frame.substr(0, 1), std::move(numbers));
            next.frame.erase(0, 1);
        }
        if (sent) sent = co_await stream->write(std::move(next.frame));
        if (!sent) stream->close();
        if (!sent) break;
    }
    self->sending_ = false;
}

}  // namespace cloister::engine
