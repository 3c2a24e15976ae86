// watchFiles: what changes below a directory, as server-sent events, lines of JSON, or messages of
// a WebSocket.
#include <fmt/format.h>

#include <chrono>
#include <deque>
#include <memory>
#include <utility>

#include "base/limits.h"
#include "faces/rest/event_stream.h"
#include "faces/rest/file_requests.h"
#include "faces/rest/handlers.h"
#include "ops/watch_files.h"

namespace cloister::rest {
namespace {

constexpr std::chrono::milliseconds kHeartbeat{limits::kHeartbeatMs};
// Beyond it nothing is taken from the sandbox, whose kernel then counts on and tells `overflow`.
constexpr size_t kQueued = 1'000;

// What has come and is not sent yet.
struct Events {
    ops::WatchStream stream;
    std::deque<json::object> queue;
    Signal changed;
    bool closed = false;  // nothing more comes

    void close() {
        closed = true;
        stream.watch->close();
        changed.notify_all();
    }
};

Task<void> collect(std::shared_ptr<Events> events) {
    while (!events->closed) {
        auto event = co_await events->stream.watch->next();
        if (!event) break;
        while (!events->closed && events->queue.size() >= kQueued) co_await events->changed.wait();
        events->queue.push_back(std::move(*event));
        events->changed.notify_all();
    }
    events->closed = true;
    events->changed.notify_all();
}

class Outlet {
  public:
    virtual ~Outlet() = default;
    virtual Task<Result<void>> send(std::vector<std::string> events) = 0;
    virtual Task<Result<void>> heartbeat() = 0;
};

class BodyOutlet final : public Outlet {
  public:
    BodyOutlet(http::Response& response, EventForm form) : response_(response), form_(form) {}
    Task<Result<void>> send(std::vector<std::string> events) override {
        std::string out;
        for (const std::string& event : events) {
            out += form_ == EventForm::Sse
                       ? fmt::format("id: {}\nevent: change\ndata: {}\n\n", ++number_, event)
                       : event + "\n";
        }
        co_return co_await response_.write(std::move(out));
    }
    Task<Result<void>> heartbeat() override {
        std::string sign = "{\"event\":\"heartbeat\"}\n";
        if (form_ == EventForm::Sse) sign = ": nothing has changed\n\n";
        co_return co_await response_.write(std::move(sign));
    }

  private:
    http::Response& response_;
    const EventForm form_;
    uint64_t number_ = 0;
};

class SocketOutlet final : public Outlet {
  public:
    explicit SocketOutlet(http::WebSocket& socket) : socket_(socket) {}
    Task<Result<void>> send(std::vector<std::string> events) override {
        co_return co_await socket_.send(http::WebSocketKind::Text, events);
    }
    Task<Result<void>> heartbeat() override { co_return co_await socket_.ping(); }

  private:
    http::WebSocket& socket_;
};

std::vector<std::string> taken(Events& events) {
    std::vector<std::string> out;
    for (const json::object& event : events.queue) out.push_back(json::serialize(event));
    events.queue.clear();
    events.changed.notify_all();
    return out;
}

Task<void> pump(Outlet& outlet, http::Response& response, std::shared_ptr<Events> events) {
    response.on_disconnect([events] { events->close(); });
    spawn(collect(events));
    Result<void> sent = co_await outlet.send({R"({"event":"started"})"});
    bool told_end = false;
    while (sent && !response.disconnected()) {
        if (!events->queue.empty()) {
            told_end = events->queue.back().at("event").as_string() == "ended";
            sent = co_await outlet.send(taken(*events));
        } else if (events->closed) {
            if (!told_end) (void)co_await outlet.send({R"({"event":"ended","reason":"sandbox"})"});
            break;
        } else if (!co_await events->changed.wait_for(kHeartbeat)) {
            sent = co_await outlet.heartbeat();
        }
    }
    events->close();
}

Task<Result<void>> refuse(http::WebSocketMessage) {
    co_return make_error(ErrorKind::InvalidArgument, "this stream takes no messages");
}

Task<Result<Answer>> to_websocket(Call& call, std::shared_ptr<Events> events) {
    const auto socket = co_await call.response.upgrade(call.request, limits::kWebSocketMessageMax);
    if (!socket) co_return socket.error();
    (*socket)->listen(refuse);
    SocketOutlet outlet(**socket);
    co_await pump(outlet, call.response, std::move(events));
    (void)co_await call.response.finish();  // a reader that is gone does not miss it
    co_return Answer::streamed(101);
}

}  // namespace

Task<Result<Answer>> watch_files(Call& call) {
    const Result<ops::FileInput> input = file_input(call);
    if (!input) co_return input.error();
    const Result<bool> recursive = query_flag(call, "recursive");
    if (!recursive) co_return recursive.error();
    const auto depth = *recursive ? ops::WatchDepth::Tree : ops::WatchDepth::Directory;
    auto stream = co_await ops::watch_files(*call.engine, call.caller, *input, depth);
    if (!stream) co_return std::move(stream).error();
    const auto events = std::make_shared<Events>();
    events->stream = std::move(*stream);
    if (http::wants_websocket(call.request)) co_return co_await to_websocket(call, events);
    const EventForm form = event_form(call.request).value_or(EventForm::Sse);
    const char* type = form == EventForm::Sse ? "text/event-stream" : "application/x-ndjson";
    const http::Headers headers{{"Content-Type", type}, {"Cache-Control", "no-store"}};
    const Result<void> begun = co_await call.response.start(200, headers);
    if (!begun) co_return Answer::streamed(200);
    BodyOutlet outlet(call.response, form);
    co_await pump(outlet, call.response, events);
    (void)co_await call.response.finish();  // as above
    co_return Answer::streamed(200);
}

}  // namespace cloister::rest
