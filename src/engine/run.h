// Run: one execution of code in a context, from queued to ended. This is its synchronous core:
// frames of the agent go in, events and the record come out. The coroutine that feeds it is
// Context's.
//
// A run ends exactly once, after all of its output; `ended` is the last event of its log, and by
// then its record has been stored. Threading: the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/limits.h"
#include "egress/policy.h"
#include "engine/run_log.h"
#include "engine/run_output.h"
#include "engine/run_stdin.h"
#include "loop/loop.h"
#include "wire/frame.h"
#include "wire/json.h"
#include "wire/run_end.h"

namespace cloister::engine {

struct InlineFile {
    std::string path;
    std::string bytes;
};

// What a run makes of its sandbox's limits while it runs; 0: as they are.
struct Narrowed {
    uint64_t memory_max = 0;  // bytes
    uint32_t pids_max = 0;
    bool any() const { return memory_max != 0 || pids_max != 0; }
};

// What follows when a run has written more than RunSpec::output_max.
enum class OnOutputLimit {
    End,      // it ends `output_limit`
    Discard,  // it goes on; what it writes from there on is counted and kept nowhere
};

enum class StdinMode {
    None,   // at its end at once
    Text,   // RunSpec::stdin_text, then the end
    Calls,  // what write_stdin brings
};

// What to run. Every field is within limits.h (ops checks).
struct RunSpec {
    std::string language;    // empty: that of the context
    std::string context_id;  // empty: the default one of the language
    std::string code;
    std::optional<std::string> filename;
    std::vector<std::string> argv;
    StringMap env;
    std::optional<std::string> cwd;
    StdinMode stdin_mode = StdinMode::None;
    std::string stdin_text;
    std::vector<InlineFile> files;
    int64_t timeout_ms = limits::kRunTimeoutDefaultMs;
    uint64_t output_max = limits::kOutputMaxDefault;
    OnOutputLimit on_output_limit = OnOutputLimit::End;
    size_t inline_max = limits::kInlineOutputMax;  // of each stream, in JSON answers
    int64_t cpu_time_ms = 0;                       // 0: no limit
    Narrowed narrowed;
    std::optional<egress::PolicySpec> network;  // narrows that of the sandbox
    bool metrics = false;                       // an event each second of what the run uses
    // Of its request, not of its row: there the id tells it (run_id.h).
    std::string idempotency_key;
};

enum class RunState { Queued, Running, Ended };
enum class Detail { Whole, WithoutOutput };

class Run : public std::enable_shared_from_this<Run> {
  public:
    struct Place {
        std::string project, sandbox, context;
    };
    // Stores the record; called once, when the run has ended and before anybody hears of it.
    // Answers whether that worked.
    using Keep = std::function<bool(Run&)>;
    Run(Place place, RunSpec spec, Keep keep);
    // A run of a former server.
    enum class Begun { No, Yes };
    struct Former {
        std::string id;
        int64_t created_ms = 0;
        Begun begun = Begun::No;  // Yes: the agent has its events, from the first one on
    };
    Run(Former former, Place place, RunSpec spec, Keep keep);

    const std::string& id() const { return id_; }
    const Place& place() const { return place_; }
    RunSpec& spec() { return spec_; }
    RunState state() const { return state_; }
    // Whether the agent said how it ended: then it says no more of this run.
    bool agent_ended_it() const { return said_end_ms_ != 0; }
    bool ended() const { return state_ == RunState::Ended; }
    int64_t created_ms() const { return created_ms_; }
    bool begun_before() const { return begun_before_; }
    // Whether the agent has said that it is stopping the run.
    bool being_stopped() const { return being_stopped_; }
    // Whether the record of its end has been stored.
    bool kept() const { return kept_; }
    void set_kept() { kept_ = true; }
    const std::shared_ptr<RunLog>& log() const { return log_; }
    const std::shared_ptr<RunStdin>& input() const { return stdin_; }
    Signal& end_signal() { return end_signal_; }
    const RunEnd& end_value() const { return end_; }
    json::object to_json(Detail detail) const;
    // About how much memory an ended run holds.
    size_t kept_bytes() const { return log_->bytes() + output_.kept_bytes(); }

    // --- From the context ---
    // Work for this run has begun: its files, its interpreter.
    void begin();
    void add_start_ms(int64_t spent) { start_ms_ += spent; }
    void set_started_as(std::string how) { started_as_ = std::move(how); }
    // How many runs of its context begin before it, itself counted; 0: it has begun.
    void set_queue_position(size_t position) { queue_position_ = position; }
    // What the run before has listed: a file that is as it was then is not this run's. (Their times
    // alone do not tell: the kernel's clock for files moves every few milliseconds.)
    void set_listed_before(std::vector<Artifact> files) { listed_before_ = std::move(files); }
    // The limits in force, for the record.
    void set_limits(json::object limits) { limits_ = std::move(limits); }
    // The interpreter of this run is not the one of the run before.
    // `reason`: in one word, where there is one.
    void set_state_lost(std::string why, std::string reason = {});
    // What the sandbox's disk held, and how long ago somebody looked.
    void set_disk(uint64_t bytes, int64_t age_ms);
    // A step of stopping the run that was not the agent's.
    void add_step(std::string_view action);
    // So much of RunSpec::stdin_text has reached the agent before.
    void skip_stdin(size_t bytes);
    // Takes one frame of the agent; an error means that the agent cannot be trusted any more.
    Result<void> accept(const Frame& frame);
    // Ends the run; nothing if it has ended before.
    void end(RunEnd end);
    void end(EndReason reason, std::string message);

  private:
    Result<void> accept_event(const json::object& event);
    void write(OutputStream stream, std::string_view bytes);
    void append_text(OutputStream stream, std::string_view bytes);
    void on_started(const json::object& event);
    void on_shown(std::string_view type, const json::object& event);
    void on_clear(const json::object& event);
    void on_error(const json::object& event);
    void on_step(const json::object& event);
    void on_metrics(const json::object& event);
    void on_lost(const json::object& event);
    Result<void> on_ended(const json::object& event);
    void add_times(json::object& run) const;

    const std::string id_;
    const Place place_;
    const bool begun_before_;
    RunSpec spec_;
    Keep keep_;
    bool kept_ = false;
    bool being_stopped_ = false;
    RunState state_ = RunState::Queued;
    std::shared_ptr<RunLog> log_ = std::make_shared<RunLog>();
    std::shared_ptr<RunStdin> stdin_ = std::make_shared<RunStdin>();
    Signal end_signal_;
    RunOutput output_;
    RunEnd end_;
    int64_t created_ms_, started_ms_ = 0, ended_ms_ = 0;  // since the epoch
    int64_t said_end_ms_ = 0;                             // when it ended, by the agent's word
    int64_t queued_at_, begun_at_ = 0;                    // steady
    int64_t start_ms_ = 0;
    int64_t execution_count_ = 0;
    size_t queue_position_ = 0;
    json::object limits_;
    std::vector<Artifact> listed_before_;
    std::string started_as_;
    std::string state_lost_why_, state_lost_reason_;
    uint64_t disk_bytes_ = 0;
    std::optional<int64_t> disk_age_ms_;  // nothing: nobody has looked
};

// The record of a run that a former server left, ended for that reason without having been seen.
json::object ended_record(json::object record, EndReason reason, std::string message,
                          int64_t now_ms);

}  // namespace cloister::engine
