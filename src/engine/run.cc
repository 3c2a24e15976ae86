#include "engine/run.h"

#include <algorithm>
#include <utility>

#include "base/ids.h"
#include "base/json_text.h"
#include "base/time.h"
#include "base/utf8.h"
#include "engine/agent.h"
#include "engine/run_end_json.h"
#include "engine/tier.h"
#include "wire/base64.h"

namespace cloister::engine {
namespace {

std::string_view word_of(RunState state) {
    switch (state) {
        case RunState::Queued:
            return "queued";
        case RunState::Running:
            return "running";
        case RunState::Ended:
            return "ended";
    }
    return "ended";
}

std::string_view text_of(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    return value != nullptr && value->is_string() ? std::string_view(value->as_string())
                                                  : std::string_view();
}

int64_t int_of(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    return value != nullptr && value->is_int64() ? value->as_int64() : 0;
}

json::object object_of(const json::object& event, std::string_view name) {
    const json::value* value = event.if_contains(name);
    return value != nullptr && value->is_object() ? value->as_object() : json::object();
}

// When an event happened by the word of the agent, as far as that can be: since `earliest`.
int64_t moment_in(const json::object& event, int64_t earliest) {
    const int64_t now = unix_ms(), said = int_of(event, "at_ms");
    return said == 0 ? now : std::clamp(said, std::min(earliest, now), now);
}

// What a display or result shows, without fields that we do not know.
json::object shown_of(const json::object& event) {
    json::object out{{"data", object_of(event, "data")},
                     {"metadata", object_of(event, "metadata")}};
    const std::string_view id = text_of(event, "display_id");
    if (!id.empty()) out["display_id"] = id;
    return out;
}

json::array lines_of(const json::object& event, std::string_view name) {
    json::array out;
    const json::value* value = event.if_contains(name);
    if (value == nullptr || !value->is_array()) return out;
    for (const json::value& line : value->as_array()) {
        if (line.is_string()) out.push_back(line);
    }
    return out;
}

}  // namespace

Run::Run(Place place, RunSpec spec, Keep keep)
    : Run({.id = new_id(), .created_ms = unix_ms()}, std::move(place), std::move(spec),
          std::move(keep)) {}

Run::Run(Former former, Place place, RunSpec spec, Keep keep)
    : id_(std::move(former.id)),
      place_(std::move(place)),
      begun_before_(former.begun == Begun::Yes),
      spec_(std::move(spec)),
      keep_(std::move(keep)),
      output_(spec_.inline_max),
      created_ms_(former.created_ms),
      queued_at_(steady_ms()) {}

void Run::begin() {
    begun_at_ = steady_ms();
}

void Run::set_state_lost(std::string why, std::string reason) {
    state_lost_why_ = std::move(why);
    state_lost_reason_ = std::move(reason);
}

void Run::set_disk(uint64_t bytes, int64_t age_ms) {
    disk_bytes_ = bytes;
    disk_age_ms_ = age_ms;
}

void Run::add_step(std::string_view action) {
    if (ended() || started_ms_ == 0) return;
    log_->append("step", json::serialize(json::object{{"action", action},
                                                      {"after_ms", unix_ms() - started_ms_}}));
}

void Run::skip_stdin(size_t bytes) {
    spec_.stdin_text.erase(0, std::min(bytes, spec_.stdin_text.size()));
}

Result<void> Run::accept(const Frame& frame) {
    switch (frame.kind) {
        case FrameKind::Stdout:
            write(OutputStream::Stdout, frame.payload);
            return {};
        case FrameKind::Stderr:
            write(OutputStream::Stderr, frame.payload);
            return {};
        case FrameKind::Json:
            return accept_event(TRY(parse_agent_object(frame.payload)));
        case FrameKind::Stdin:
        case FrameKind::Data:
            break;
    }
    return make_error(ErrorKind::Unavailable, "the sandbox's agent sent a frame that no run has");
}

Result<void> Run::accept_event(const json::object& event) {
    const std::string_view type = text_of(event, "event");
    if (type == "started") on_started(event);
    if (type == "display" || type == "result" || type == "display_update") on_shown(type, event);
    if (type == "clear_output") on_clear(event);
    if (type == "error") on_error(event);
    if (type == "step") on_step(event);
    if (type == "metrics") on_metrics(event);
    if (type == "lost") on_lost(event);
    if (type == "ended") return on_ended(event);
    return {};
}

void Run::write(OutputStream stream, std::string_view bytes) {
    append_text(stream, output_.feed(stream, bytes));
}

// Bytes that are not UTF-8 are U+FFFD in `text` and exact in `base64`.
void Run::append_text(OutputStream stream, std::string_view bytes) {
    if (bytes.empty()) return;
    std::string data = "{\"text\":";
    if (is_utf8(bytes)) {
        append_json_quoted(data, bytes);
    } else {
        append_json_quoted(data, to_utf8(bytes));
        data += ",\"base64\":\"" + base64_encode(bytes) + '"';
    }
    data += '}';
    log_->append(stream == OutputStream::Stdout ? "stdout" : "stderr", std::move(data),
                 bytes.size());
}

void Run::on_started(const json::object& event) {
    if (state_ != RunState::Queued) return;
    state_ = RunState::Running;
    started_ms_ = moment_in(event, created_ms_);
    if (begun_before_) begun_at_ = queued_at_ + started_ms_ - created_ms_;
    log_->append("started", json::serialize(json::object{{"run", to_json(Detail::WithoutOutput)}}));
}

void Run::on_shown(std::string_view type, const json::object& event) {
    json::object shown = shown_of(event);
    std::string data = json::serialize(shown);
    const size_t bytes = data.size();
    log_->append(type, std::move(data), bytes);
    if (type == "result") execution_count_ = int_of(event, "execution_count");
    if (type == "display_update") {
        output_.update(shown);
    } else {
        output_.show(type == "result" ? RunOutput::Kind::Result : RunOutput::Kind::Display,
                     std::move(shown));
    }
}

void Run::on_clear(const json::object& event) {
    const json::value* value = event.if_contains("wait");
    const bool wait = value != nullptr && value->is_bool() && value->as_bool();
    log_->append("clear_output", json::serialize(json::object{{"wait", wait}}));
    output_.clear(wait ? RunOutput::When::AtNextDisplay : RunOutput::When::Now);
}

void Run::on_error(const json::object& event) {
    json::object error{{"name", text_of(event, "name")},
                       {"value", text_of(event, "value")},
                       {"traceback", lines_of(event, "traceback")}};
    if (const int64_t line = int_of(event, "line"); line > 0) error["line"] = line;
    log_->append("error", json::serialize(error));
    output_.set_error(std::move(error));
}

void Run::on_step(const json::object& event) {
    const json::object step{{"action", text_of(event, "action")},
                            {"after_ms", int_of(event, "after_ms")}};
    log_->append("step", json::serialize(step));
    being_stopped_ = true;
}

void Run::on_metrics(const json::object& event) {
    json::object metrics;
    for (const std::string_view name : {"wall_ms", "cpu_ms", "memory_bytes", "output_bytes"}) {
        metrics[name] = int_of(event, name);
    }
    log_->append("metrics", json::serialize(metrics));
}

void Run::on_lost(const json::object& event) {
    const json::object dropped{{"events", int_of(event, "events")},
                               {"bytes", int_of(event, "bytes")}};
    log_->append("dropped", json::serialize(dropped));
    output_.lose(static_cast<uint64_t>(std::max<int64_t>(int_of(event, "bytes"), 0)));
}

Result<void> Run::on_ended(const json::object& event) {
    RunEnd value = TRY(decode_run_end(event));
    std::erase_if(value.artifacts, [this](const Artifact& file) {
        return std::ranges::find(listed_before_, file) != listed_before_.end();
    });
    said_end_ms_ = moment_in(event, std::max(started_ms_, created_ms_));
    if (const int64_t count = int_of(event, "execution_count"); count > 0) execution_count_ = count;
    end(std::move(value));
    return {};
}

void Run::end(EndReason reason, std::string message) {
    RunEnd value{.reason = reason, .exit_code = std::nullopt, .message = std::move(message)};
    value.state_lost = reason == EndReason::SandboxLost;
    value.usage.wall_ms = started_ms_ == 0 ? 0 : unix_ms() - started_ms_;
    end(std::move(value));
}

void Run::end(RunEnd value) {
    if (ended()) return;
    for (const OutputStream stream : {OutputStream::Stdout, OutputStream::Stderr}) {
        append_text(stream, output_.finish(stream));
    }
    end_ = std::move(value);
    if (!state_lost_why_.empty()) {
        end_.state_lost = true;
        if (end_.message.empty()) end_.message = state_lost_why_;
    }
    state_ = RunState::Ended;
    ended_ms_ = said_end_ms_ == 0 ? unix_ms() : said_end_ms_;
    stdin_->close();
    spec_ = RunSpec{.language = spec_.language};  // code and files are not needed any more
    if (keep_) kept_ = std::exchange(keep_, nullptr)(*this);
    log_->append("ended", json::serialize(to_json(Detail::WithoutOutput)));
    log_->close();
    end_signal_.notify_all();
}

json::object Run::to_json(Detail detail) const {
    json::object out{
        {"id", id_},     {"sandbox_id", place_.sandbox}, {"context_id", place_.context},
        {"tier", kTier}, {"language", spec_.language},   {"state", word_of(state_)}};
    if (ended()) add_run_end(out, end_);
    if (!limits_.empty()) out["limits"] = limits_;
    if (state_ == RunState::Queued && queue_position_ > 0) out["queue_position"] = queue_position_;
    add_times(out);
    output_.add_error_to(out);
    if (!started_as_.empty()) out["started_as"] = started_as_;
    if (ended() && !state_lost_reason_.empty()) out["state_lost_reason"] = state_lost_reason_;
    if (execution_count_ > 0) out["execution_count"] = execution_count_;
    if (detail == Detail::Whole) output_.add_streams_to(out);
    // An ended run counts its `ended` event also while that is being made.
    out["last_event"] = log_->last() + (ended() && !log_->closed() ? 1 : 0);
    return out;
}

void Run::add_times(json::object& run) const {
    run["created_at"] = rfc3339(created_ms_);
    if (started_ms_ != 0) run["started_at"] = rfc3339(started_ms_);
    if (!ended()) return;
    run["ended_at"] = rfc3339(ended_ms_);
    json::object& metrics = run["metrics"].as_object();
    metrics["queued_ms"] = (begun_at_ == 0 ? steady_ms() : begun_at_) - queued_at_;
    metrics["start_ms"] = start_ms_;
    if (!disk_age_ms_) return;
    metrics["disk_bytes"] = disk_bytes_;
    metrics["disk_age_ms"] = *disk_age_ms_;
}

json::object ended_record(json::object record, EndReason reason, std::string message,
                          int64_t now_ms) {
    RunEnd end{.reason = reason};
    end.message = std::move(message);
    end.state_lost = reason == EndReason::SandboxLost;
    add_run_end(record, end);
    record["state"] = "ended";
    record["ended_at"] = rfc3339(now_ms);
    return record;
}

}  // namespace cloister::engine
