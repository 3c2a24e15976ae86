#include "faces/rest/event_stream.h"

#include <fmt/format.h>

#include <chrono>
#include <iterator>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/number.h"
#include "faces/rest/encode.h"

namespace cloister::rest {
namespace {

using engine::Event;

constexpr std::chrono::milliseconds kHeartbeat{limits::kHeartbeatMs};
constexpr size_t kBatch = 4 * limits::kStreamChunk;

// Where events go.
class Outlet {
  public:
    virtual ~Outlet() = default;
    virtual Task<Result<void>> send(const std::vector<Event>& events) = 0;
    virtual Task<Result<void>> heartbeat() = 0;
};

// Calls `append` for each event. The engine knows no URLs: those of a run's artifacts come in here.
template <class Append>
void for_each_event(const std::vector<Event>& events, const engine::Run* run, Append append) {
    for (const Event& event : events) {
        if (run == nullptr || event.type != "ended") {
            append(event);
            continue;
        }
        const std::string record =
            json::serialize(run_json(run->to_json(engine::Detail::WithoutOutput)));
        append(Event{.number = event.number, .type = event.type, .data = record});
    }
}

class BodyOutlet final : public Outlet {
  public:
    BodyOutlet(http::Response& response, const engine::Run* run, EventForm form)
        : response_(response), run_(run), form_(form) {}

    Task<Result<void>> send(const std::vector<Event>& events) override {
        std::string out;
        for_each_event(events, run_, [&](const Event& event) {
            if (form_ == EventForm::Sse) return append_sse(out, event);
            append_json(out, event);
            out += '\n';
        });
        co_return co_await response_.write(std::move(out));
    }
    Task<Result<void>> heartbeat() override {
        std::string sign = "{\"event\":\"heartbeat\"}\n";
        if (form_ == EventForm::Sse)
            sign = run_ != nullptr ? ": the run goes on\n\n" : ": the sandbox lives\n\n";
        co_return co_await response_.write(std::move(sign));
    }

  private:
    http::Response& response_;
    const engine::Run* run_;
    const EventForm form_;
};

class SocketOutlet final : public Outlet {
  public:
    SocketOutlet(http::WebSocket& socket, const engine::Run& run) : socket_(socket), run_(run) {}

    Task<Result<void>> send(const std::vector<Event>& events) override {
        std::vector<std::string> messages;
        for_each_event(events, &run_, [&messages](const Event& event) {
            append_json(messages.emplace_back(), event);
        });
        co_return co_await socket_.send(http::WebSocketKind::Text, messages);
    }
    Task<Result<void>> heartbeat() override { co_return co_await socket_.ping(); }

  private:
    http::WebSocket& socket_;
    const engine::Run& run_;
};

Task<void> pump(Outlet& outlet, http::Response& response, std::shared_ptr<engine::RunLog> log,
                uint64_t after) {
    engine::RunLog::Reader reader = log->attach(after);
    response.on_disconnect([log] { log->changed().notify_all(); });
    while (!response.disconnected()) {
        const std::vector<Event> events = reader.take(kBatch);
        if (events.empty() && log->closed()) co_return;
        Result<void> sent;
        if (events.empty()) {
            const bool woken = co_await log->changed().wait_for(kHeartbeat);
            if (woken) continue;
            sent = co_await outlet.heartbeat();
        } else {
            sent = co_await outlet.send(events);
        }
        if (!sent) co_return;
        reader.done(events);
    }
}

Task<Result<void>> refuse(http::WebSocketMessage) {
    co_return make_error(ErrorKind::InvalidArgument, "this stream takes no messages");
}

}  // namespace

std::optional<EventForm> event_form(const http::Request& request) {
    const std::string_view accept = request.header("Accept");
    if (accept.find("text/event-stream") != std::string_view::npos) return EventForm::Sse;
    if (accept.find("application/x-ndjson") != std::string_view::npos) return EventForm::Lines;
    return std::nullopt;
}

void append_sse(std::string& out, const Event& event) {
    out.reserve(out.size() + event.data.size() + 64);
    fmt::format_to(std::back_inserter(out), "id: {}\nevent: {}\ndata: ", event.number, event.type);
    out += event.data;
    out += "\n\n";
}

void append_json(std::string& out, const Event& event) {
    out.reserve(out.size() + event.data.size() + 64);
    fmt::format_to(std::back_inserter(out), R"({{"id":{},"event":"{}","data":)", event.number,
                   event.type);
    out += event.data;
    out += '}';
}

namespace {

Task<void> stream_body(http::Response& response, std::shared_ptr<engine::RunLog> log,
                       const engine::Run* run, uint64_t after, EventForm form) {
    const char* type = form == EventForm::Sse ? "text/event-stream" : "application/x-ndjson";
    const Result<void> begun =
        co_await response.start(200, {{"Content-Type", type}, {"Cache-Control", "no-store"}});
    if (!begun) co_return;
    BodyOutlet outlet(response, run, form);
    co_await pump(outlet, response, std::move(log), after);
    (void)co_await response.finish();  // a reader that is gone does not miss it
}

}  // namespace

Task<void> stream_events(http::Response& response, std::shared_ptr<engine::Run> run, uint64_t after,
                         EventForm form) {
    co_await stream_body(response, run->log(), run.get(), after, form);
}

Task<void> stream_log(http::Response& response, std::shared_ptr<engine::RunLog> log, uint64_t after,
                      EventForm form) {
    co_await stream_body(response, std::move(log), nullptr, after, form);
}

Task<Result<void>> stream_to_websocket(const http::Request& request, http::Response& response,
                                       std::shared_ptr<engine::Run> run, uint64_t after) {
    const auto socket = co_await response.upgrade(request, limits::kWebSocketMessageMax);
    if (!socket) co_return socket.error();
    (*socket)->listen(refuse);
    SocketOutlet outlet(**socket, *run);
    co_await pump(outlet, response, run->log(), after);
    (void)co_await response.finish();  // as above
    co_return Result<void>{};
}

}  // namespace cloister::rest
