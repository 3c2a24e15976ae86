#include "faces/rest/sse.h"

#include <fmt/format.h>

#include <chrono>

#include "base/limits.h"
#include "faces/rest/encode.h"

namespace cloister::rest {
namespace {

constexpr std::chrono::seconds kHeartbeat{15};
constexpr size_t kBatch = 4 * limits::kStreamChunk;

std::string batch_of(const std::vector<engine::Event>& events, const engine::Run& run) {
    std::string out;
    for (const engine::Event& event : events) {
        if (event.type != "ended") {
            append_sse(out, event);
            continue;
        }
        // The engine knows no URLs; the face adds those of the artifacts.
        const json::object record = run_json(run.to_json(engine::Detail::WithoutOutput));
        append_sse(out,
                   {.number = event.number, .type = event.type, .data = json::serialize(record)});
    }
    return out;
}

}  // namespace

void append_sse(std::string& out, const engine::Event& event) {
    fmt::format_to(std::back_inserter(out), "id: {}\nevent: {}\ndata: ", event.number, event.type);
    out += event.data;
    out += "\n\n";
}

Task<void> stream_events(http::Response& response, std::shared_ptr<engine::Run> run,
                         uint64_t after) {
    const std::shared_ptr<engine::RunLog> log = run->log();
    engine::RunLog::Reader reader = log->attach(after);
    response.on_disconnect([log] { log->changed().notify_all(); });
    const Result<void> begun = co_await response.start(
        200, {{"Content-Type", "text/event-stream"}, {"Cache-Control", "no-store"}});
    if (!begun) co_return;
    while (!response.disconnected()) {
        const std::vector<engine::Event> events = reader.take(kBatch);
        if (events.empty() && log->closed()) break;
        std::string bytes = batch_of(events, *run);
        if (events.empty()) {
            const bool woken = co_await log->changed().wait_for(kHeartbeat);
            if (woken) continue;
            bytes = ": the run goes on\n\n";
        }
        const Result<void> written = co_await response.write(std::move(bytes));
        if (!written) co_return;
        reader.done(events);
    }
    (void)co_await response.finish();  // a reader that is gone does not miss it
}

}  // namespace cloister::rest
