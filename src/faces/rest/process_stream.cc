#include "faces/rest/process_stream.h"

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/json_text.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "engine/run_output.h"
#include "faces/rest/decode.h"
#include "ops/open_stdin.h"
#include "ops/resize_terminal.h"
#include "ops/signal_process.h"
#include "ops/write_process_stdin.h"
#include "wire/base64.h"

namespace cloister::rest {
namespace {

using engine::ProcessItem;
using engine::ProcessStream;
using Kind = ProcessItem::Kind;

constexpr std::chrono::milliseconds kHeartbeat{limits::kHeartbeatMs};
// The alternate screen, empty: for a terminal whose bytes begin behind the switch to it.
constexpr std::string_view kEnterAlternate = "\x1b[?1049h\x1b[H\x1b[2J";

std::string_view word_of(Kind kind) {
    switch (kind) {
        case Kind::Started:
            return "started";
        case Kind::Stdout:
            return "stdout";
        case Kind::Stderr:
            return "stderr";
        case Kind::Dropped:
            return "dropped";
        case Kind::Ended:
            return "ended";
    }
    return "ended";
}

// Bytes that are not UTF-8 are U+FFFD in `text` and exact in `base64`.
std::string text_json(std::string_view bytes) {
    std::string data = "{\"text\":";
    if (is_utf8(bytes)) {
        append_json_quoted(data, bytes);
    } else {
        append_json_quoted(data, to_utf8(bytes));
        data += ",\"base64\":\"" + base64_encode(bytes) + '"';
    }
    return data + '}';
}

std::string data_of(const ProcessItem& item) {
    switch (item.kind) {
        case Kind::Stdout:
        case Kind::Stderr:
            return text_json(item.bytes);
        case Kind::Dropped:
            return fmt::format("{{\"bytes\":{}}}", item.dropped);
        case Kind::Started:
        case Kind::Ended:
            break;
    }
    return json::serialize(json::object{{"process", item.process}});
}

void append_event(std::string& out, const ProcessItem& item, EventForm form) {
    const std::string data = data_of(item);
    const engine::Event event{.number = item.end, .type = word_of(item.kind), .data = data};
    if (form == EventForm::Sse) return append_sse(out, event);
    append_json(out, event);
    out += '\n';
}

void close_when_gone(http::Response& response, const std::shared_ptr<ProcessStream>& stream) {
    response.on_disconnect([stream] { stream->close(); });
}

// Gives the items to `send`, and calls `beat` in silence, until the end.
Task<void> pump(http::Response& response, std::shared_ptr<ProcessStream> stream,
                std::function<Task<Result<void>>(std::vector<ProcessItem>&)> send,
                std::function<Task<Result<void>>()> beat) {
    close_when_gone(response, stream);
    bool ended = false;
    while (!ended && !response.disconnected() && !stream->closed()) {
        std::vector<ProcessItem> items = co_await stream->next(kHeartbeat);
        ended = !items.empty() && items.back().kind == Kind::Ended;
        Result<void> sent;
        if (items.empty()) {
            sent = co_await beat();
        } else {
            sent = co_await send(items);
        }
        if (!sent) break;
    }
    stream->close();
}

Task<Result<void>> refuse(http::WebSocketMessage) {
    co_return make_error(ErrorKind::InvalidArgument, "this stream takes no messages");
}

// --- A WebSocket with both directions ---

// What a client of a terminal or of pipes sends.
class Control : public std::enable_shared_from_this<Control> {
  public:
    Control(const Call& call, ops::ProcessName name)
        : engine_(call.engine), caller_(call.caller), name_(std::move(name)) {}

    Task<Result<void>> take(http::WebSocketMessage message) {
        const auto self = shared_from_this();
        if (message.kind == http::WebSocketKind::Binary) {
            co_return co_await write(std::move(message.payload));
        }
        const auto object = parse_object(message.payload);
        if (!object) co_return object.error();
        FieldReader in(*object, "");
        const json::object* size = in.optional_object("resize");
        const auto signal = in.optional_string("signal", 16);
        const bool eof = in.optional_bool("eof").value_or(false);
        const Result<void> known = in.finish();
        if (!known) co_return known;
        Result<void> done;
        if (size != nullptr) done = co_await resize(*size);
        if (done && signal) {
            done = co_await ops::signal_process(*engine_, caller_, name_, *signal);
        }
        if (done && eof) done = co_await end_stdin();
        co_return forgive(done);
    }

  private:
    // What comes when the process has just ended is no fault of the client's.
    static Result<void> forgive(const Result<void>& done) {
        const bool late = !done && done.error().kind == ErrorKind::FailedPrecondition;
        return late ? Result<void>() : done;
    }

    Task<Result<void>> write(std::string bytes) {
        if (bytes.empty()) co_return Result<void>{};
        if (!input_) {
            auto opened = co_await ops::open_stdin(*engine_, caller_, name_);
            if (!opened) co_return forgive(opened.error());
            input_ = *opened;
        }
        // A process that has ended takes no more: its `ended` says so.
        (void)co_await input_->write(std::move(bytes));
        co_return Result<void>{};
    }

    Task<Result<void>> end_stdin() {
        if (input_) input_->close();
        input_.reset();
        co_return co_await ops::write_process_stdin(*engine_, caller_, name_, {},
                                                    engine::StdinEnd::Yes);
    }

    Task<Result<void>> resize(const json::object& wanted) {
        const auto size = decode_size(wanted, "resize.");
        if (!size) co_return size.error();
        co_return co_await ops::resize_terminal(*engine_, caller_, name_, *size);
    }

    const std::shared_ptr<engine::Engine> engine_;
    const engine::Principal caller_;
    const ops::ProcessName name_;
    std::shared_ptr<engine::ProcessInput> input_;
};

// Output as binary messages; which of the two streams of pipes they are of, text messages say.
class Messages {
  public:
    explicit Messages(http::WebSocket& socket) : socket_(socket) {}

    Task<Result<void>> send(std::vector<ProcessItem>& items) {
        std::string bytes;
        for (ProcessItem& item : items) {
            const bool output = item.kind == Kind::Stdout || item.kind == Kind::Stderr;
            if (output && item.kind == stream_) {
                bytes += item.bytes;
                continue;
            }
            if (!bytes.empty()) {
                const Result<void> sent =
                    co_await socket_.send(http::WebSocketKind::Binary, std::exchange(bytes, {}));
                if (!sent) co_return sent;
            }
            const Result<void> told = co_await tell(item);
            if (!told) co_return told;
            if (output) bytes = std::move(item.bytes);
        }
        if (bytes.empty()) co_return Result<void>{};
        co_return co_await socket_.send(http::WebSocketKind::Binary, bytes);
    }

  private:
    Task<Result<void>> tell(const ProcessItem& item) {
        std::string text;
        if (item.kind == Kind::Stdout || item.kind == Kind::Stderr) {
            stream_ = item.kind;
            text =
                fmt::format(R"({{"event":"stream","data":{{"name":"{}"}}}})", word_of(item.kind));
        } else {
            const std::string data = data_of(item);
            append_json(text, {.number = item.end, .type = word_of(item.kind), .data = data});
        }
        co_return co_await socket_.send(http::WebSocketKind::Text, text);
    }

    http::WebSocket& socket_;
    Kind stream_ = Kind::Stdout;
};

}  // namespace

Task<void> stream_process(http::Response& response, std::shared_ptr<ProcessStream> stream,
                          EventForm form) {
    const char* type = form == EventForm::Sse ? "text/event-stream" : "application/x-ndjson";
    const Result<void> begun =
        co_await response.start(200, {{"Content-Type", type}, {"Cache-Control", "no-store"}});
    if (!begun) co_return stream->close();
    const auto send = [&response, form](std::vector<ProcessItem>& items) {
        std::string out;
        for (const ProcessItem& item : items) append_event(out, item, form);
        return response.write(std::move(out));
    };
    const auto beat = [&response, form] {
        return response.write(form == EventForm::Sse ? ": the process goes on\n\n"
                                                     : "{\"event\":\"heartbeat\"}\n");
    };
    co_await pump(response, std::move(stream), send, beat);
    (void)co_await response.finish();  // a reader that is gone does not miss it
}

Task<Result<void>> stream_process_to_websocket(Call& call, std::shared_ptr<ProcessStream> stream) {
    const auto socket = co_await call.response.upgrade(call.request, limits::kWebSocketMessageMax);
    if (!socket) stream->close();
    if (!socket) co_return socket.error();
    (*socket)->listen(refuse);
    const auto send = [&socket = **socket](std::vector<ProcessItem>& items) {
        std::vector<std::string> messages;
        for (const ProcessItem& item : items) {
            std::string& message = messages.emplace_back();
            append_event(message, item, EventForm::Lines);
            message.pop_back();  // the newline
        }
        return socket.send(http::WebSocketKind::Text, messages);
    };
    co_await pump(call.response, std::move(stream), send,
                  [&socket = **socket] { return socket.ping(); });
    (void)co_await call.response.finish();  // as above
    co_return Result<void>{};
}

Task<Result<void>> attach_websocket(Call& call, ops::ProcessName name,
                                    std::shared_ptr<ProcessStream> stream) {
    const auto socket = co_await call.response.upgrade(call.request, limits::kWebSocketMessageMax);
    if (!socket) stream->close();
    if (!socket) co_return socket.error();
    const auto control = std::make_shared<Control>(call, std::move(name));
    (*socket)->listen(
        [control](http::WebSocketMessage message) { return control->take(std::move(message)); });
    Messages messages(**socket);
    if (stream->alternate()) {
        (void)co_await (*socket)->send(http::WebSocketKind::Binary, kEnterAlternate);
    }
    const auto send = [&messages](std::vector<ProcessItem>& items) { return messages.send(items); };
    co_await pump(call.response, std::move(stream), send,
                  [&socket = **socket] { return socket.ping(); });
    (void)co_await call.response.finish();  // as above
    co_return Result<void>{};
}

Task<Result<json::object>> wait_for_process(http::Response& response,
                                            std::shared_ptr<ProcessStream> stream,
                                            size_t inline_max) {
    engine::RunOutput output(inline_max);
    json::object process;
    const auto take = [&](std::vector<ProcessItem>& items) {
        for (ProcessItem& item : items) {
            if (item.kind == Kind::Dropped) output.lose(item.dropped);
            if (item.kind == Kind::Stdout) output.feed(engine::OutputStream::Stdout, item.bytes);
            if (item.kind == Kind::Stderr) output.feed(engine::OutputStream::Stderr, item.bytes);
            if (item.kind == Kind::Ended) process = std::move(item.process);
        }
    };
    close_when_gone(response, stream);
    while (process.empty() && !stream->closed()) {
        std::vector<ProcessItem> items = co_await stream->next(kHeartbeat);
        take(items);
    }
    stream->close();
    if (process.empty()) co_return make_error(ErrorKind::Cancelled, "the client went away");
    output.add_streams_to(process);
    process.erase("results");
    co_return process;
}

}  // namespace cloister::rest
