#include "engine/runs.h"

#include <fmt/format.h>

#include <utility>

#include "base/failpoint.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/time.h"
#include "engine/run_id.h"
#include "engine/run_spec_json.h"

namespace cloister::engine {
namespace {

std::string key_of(std::string_view project, std::string_view id) {
    return fmt::format("{}/{}", project, id);
}

std::string text_in(const json::object& record, std::string_view name) {
    const json::value* value = record.if_contains(name);
    return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
}

// What bounds the run: its own limits, and those of its sandbox where it has none.
json::object limits_json(const RunSpec& run, const SandboxSpec& sandbox) {
    const uint64_t memory = sandbox.memory_mb * limits::kMiB;
    const uint32_t pids = limits::kSandboxPidsDefault;
    json::object out{
        {"timeout_ms", run.timeout_ms},
        {"memory_max_bytes", run.narrowed.memory_max > 0 ? run.narrowed.memory_max : memory},
        {"pids", run.narrowed.pids_max > 0 ? run.narrowed.pids_max : pids},
        {"disk_bytes", sandbox.disk_mb * limits::kMiB},
        {"output_max_bytes", run.output_max}};
    if (run.cpu_time_ms > 0) out["cpu_time_ms"] = run.cpu_time_ms;
    return out;
}

// The record as it is stored. Results that would make it too large for the database are left out,
// and say so.
std::string record_text(const Run& run) {
    json::object record = run.to_json(Detail::Whole);
    std::string text = json::serialize(record);
    if (text.size() <= limits::kRunRecordMax) return text;
    const std::string note = fmt::format("[{} results are left out of the stored record]",
                                         record["results"].as_array().size());
    record["results"] = json::array{
        {{"type", "display"}, {"data", {{"text/plain", note}}}, {"metadata", json::object()}}};
    return json::serialize(record);
}

}  // namespace

Result<std::shared_ptr<Run>> Runs::start(const std::shared_ptr<Sandbox>& sandbox, RunSpec spec) {
    std::string id = run_id_for(sandbox->project(), sandbox->id(), spec.idempotency_key, spec.code);
    if (!spec.idempotency_key.empty()) {
        if (auto known = TRY(find_again(*sandbox, id, spec))) return known;
    }
    const std::shared_ptr<Context> context = TRY(contexts_->of_run(*sandbox, spec));
    TRY_OK(context->check_room());
    Run::Place place{
        .project = sandbox->project(), .sandbox = sandbox->id(), .context = context->id()};
    Run::Former fresh{.id = std::move(id), .created_ms = unix_ms()};
    auto run = std::make_shared<Run>(std::move(fresh), std::move(place), std::move(spec), keeper());
    run->set_limits(limits_json(run->spec(), sandbox->spec()));
    TRY_OK(store_->add_run({.project = run->place().project,
                            .id = run->id(),
                            .record = json::serialize(run->to_json(Detail::WithoutOutput)),
                            .spec = spec_text(run->spec()),
                            .created_ms = run->created_ms()}));
    failpoint("cloisterd:after_run_row");
    context->submit(enter(run));
    return run;
}

Result<std::shared_ptr<Run>> Runs::find_again(const Sandbox& sandbox, const std::string& id,
                                              const RunSpec& spec) const {
    if (auto known = find(sandbox.project(), id)) return known;
    if (!TRY(store_->find_run(sandbox.project(), id))) return std::shared_ptr<Run>();
    return make_error(ErrorKind::AlreadyExists,
                      fmt::format("the run with the `idempotency_key` `{}` has ended: GET "
                                  "/v1/runs/{} answers its record",
                                  spec.idempotency_key, id));
}

std::shared_ptr<Run> Runs::enter(std::shared_ptr<Run> run) {
    runs_.emplace(key_of(run->place().project, run->id()), run);
    ++active_;
    return run;
}

Run::Keep Runs::keeper() {
    return [weak = weak_from_this()](Run& ended) {
        const auto self = weak.lock();
        return self && self->keep(ended);
    };
}

std::shared_ptr<Run> Runs::find(std::string_view project, std::string_view id) const {
    const auto found = runs_.find(key_of(project, id));
    return found == runs_.end() ? nullptr : found->second;
}

Result<json::object> Runs::record(std::string_view project, std::string_view id) const {
    if (const auto run = find(project, id)) return run->to_json(Detail::Whole);
    const auto row = TRY(store_->find_run(project, id));
    if (!row) {
        return make_error(ErrorKind::NotFound,
                          fmt::format("no run `{}` in this project (records are kept for {} hours)",
                                      id, limits::kRunRecordKeepMs / 3'600'000));
    }
    return parse_agent_object(
        row->record);  // it may hold displays, nested as deeply as an agent may send
}

bool Runs::keep(Run& run) {
    const Result<void> stored = store_end(run);
    if (!stored) {
        log_error("a run's end was not stored yet", {{"error", stored.error().message}});
        unstored_.push_back(run.shared_from_this());
    }
    failpoint("cloisterd:after_end_row");
    --active_;
    ended_.push_back(run.shared_from_this());
    ended_bytes_ += run.kept_bytes();
    forget_oldest();
    return stored.has_value();
}

Result<void> Runs::store_end(const Run& run) {
    return store_->end_run(
        {.project = run.place().project, .id = run.id(), .record = record_text(run), .spec = {}},
        unix_ms());
}

void Runs::store_again() {
    while (!unstored_.empty()) {
        if (!store_end(*unstored_.front())) return;
        unstored_.front()->set_kept();
        unstored_.pop_front();
    }
}

void Runs::forget_oldest() {
    while (ended_.size() > 1 && (ended_.size() > limits::kFinishedRunsInMemory ||
                                 ended_bytes_ > limits::kFinishedRunBytesInMemory)) {
        const std::shared_ptr<Run> oldest = std::move(ended_.front());
        ended_.pop_front();
        runs_.erase(key_of(oldest->place().project, oldest->id()));
        ended_bytes_ = 0;
        for (const auto& run : ended_) ended_bytes_ += run->kept_bytes();
    }
}

// --- Runs that a former server left without an end ---

Result<std::vector<store::RunRow>> Runs::left_over() const {
    return store_->unended_runs();
}

Result<std::shared_ptr<Run>> Runs::take_over(const std::shared_ptr<Sandbox>& sandbox,
                                             const store::RunRow& row, Run::Begun begun) {
    RunSpec spec = TRY(spec_from(row.spec));
    const std::string context_id = text_in(TRY(parse_agent_object(row.record)), "context_id");
    const auto context = sandbox->find_context(context_id);
    if (!context) return make_error(ErrorKind::NotFound, "its interpreter is gone");
    auto run = std::make_shared<Run>(
        Run::Former{.id = row.id, .created_ms = row.created_ms, .begun = begun},
        Run::Place{.project = row.project, .sandbox = sandbox->id(), .context = context_id},
        std::move(spec), keeper());
    run->set_limits(limits_json(run->spec(), sandbox->spec()));
    context->submit(enter(run));
    return run;
}

Result<void> Runs::end_left_over(store::RunRow row, const Death& death) {
    row.record = json::serialize(
        ended_record(TRY(parse_agent_object(row.record)), death.reason, death.message, unix_ms()));
    return store_->end_run(row, unix_ms());
}

void Runs::tidy() {
    store_again();
    expire();
}

void Runs::expire() {
    const int64_t before = unix_ms() - limits::kRunRecordKeepMs;
    while (!ended_.empty() && ended_.front()->created_ms() < before) {
        runs_.erase(key_of(ended_.front()->place().project, ended_.front()->id()));
        ended_bytes_ -= std::min(ended_bytes_, ended_.front()->kept_bytes());
        ended_.pop_front();
    }
    const Result<void> done = store_->expire(before);
    if (!done) log_warn("old records were not removed", {{"error", done.error().message}});
}

}  // namespace cloister::engine
