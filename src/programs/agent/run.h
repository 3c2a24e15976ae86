// Run: one execution of code in a kernel, from `started` to `ended`. A state machine over the
// kernel's messages, the client's frames and time.
//
//     Run run(std::move(op), stream, kernel, …);
//     stream.attach(connection);    // a client; may go away at any time
//     run.begin();
//     … run.tick(steady_ms()) when next_deadline() has come …
//     if (run.is_over()) …          // `ended` was sent
//
// Stopping, whatever the cause: SIGINT, kInterruptGraceMs later SIGKILL for the kernel and all that
// the run started, kKillGraceMs later the kernel is given up.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "os/process_table.h"
#include "programs/agent/file_helper.h"
#include "programs/agent/kernel.h"
#include "programs/agent/operations.h"
#include "programs/agent/outcome.h"
#include "programs/agent/run_stream.h"
#include "programs/agent/stdin_fifo.h"
#include "programs/agent/usage.h"

namespace cloister::agent {

class Run : public KernelListener {
  public:
    // `cwd` is where the kernel is now; if the run moves it, the new place is written there.
    Run(RunCode op, RunStream& stream, Kernel& kernel, const UsageMeter& meter, FileHelper& files,
        os::Poller& poller, std::string& cwd);
    ~Run() override;
    Run(const Run&) = delete;

    // The leaders of families that are none of this run's: other interpreters, the agent's helper.
    std::function<std::vector<pid_t>()> other_families;

    Result<void> begin();
    void stop(StopCause cause);
    void tick(int64_t now_ms);
    std::optional<int64_t> next_deadline() const;
    bool is_over() const { return phase_ == Phase::Over; }
    const std::string& id() const { return op_.run; }

    void on_output(FrameKind stream, std::string_view bytes) override;
    void on_message(const DriverMessage& message) override;
    void on_death(const os::ChildEnd& end) override;
    bool takes_output() const override;

  private:
    enum class Phase {
        Running,
        Collecting,  // the code is over; the changed files are looked up
        Over,        // `ended` was sent
    };

    // --- stdin ---
    // Answers the driver's end, unless it opens that by itself.
    Result<os::Fd> open_stdin();
    void on_client_frame(const HeldMessage& frame);
    void end_stdin();
    void write_stdin();
    // --- events ---
    void event(std::string_view json, Haste haste = Haste::Now);
    // An event that another one follows at once, as a rule, waits for it, but not for long.
    Haste soon();
    void display(const DriverMessage& message, std::string_view name);
    void error(const DriverMessage& message);
    void note_disk_error(const DriverMessage& message);
    void reply(const DriverMessage& message);
    uint64_t count_output(uint64_t bytes);
    void exceed_output();
    // --- stopping ---
    void check_limits(int64_t now_ms);
    void kill_what_it_started() const;
    void interrupt_if_due(int64_t now_ms);
    void kill_if_due(int64_t now_ms);
    void step(std::string_view action, int64_t now_ms);
    void tell_metrics(int64_t now_ms);
    int64_t next_stop_ms() const;
    // --- the end ---
    void collect();
    void start_walk();
    void read_walk();
    void end(std::string_view walked);

    RunCode op_;
    RunStream* stream_;  // null when the run is over
    Kernel& kernel_;
    const UsageMeter& meter_;
    FileHelper& files_;
    os::Poller& poller_;
    std::string& cwd_;

    Phase phase_ = Phase::Running;
    RunFacts facts_;
    Counters before_;
    timespec files_since_{};
    int64_t started_ms_ = 0;
    int64_t next_cpu_look_ms_ = INT64_MAX;  // of a run with a limit on CPU time
    int64_t next_metrics_ms_ = INT64_MAX;
    int64_t flush_ms_ = INT64_MAX;
    os::BirthMark born_after_;
    int64_t execution_count_ = 0;

    bool busy_ = false;  // the driver has begun: from now on an interrupt reaches the code
    std::optional<int64_t> stop_ms_, kill_ms_;  // when these began
    bool interrupted_ = false;
    bool suspects_disk_ = false;  // it failed with an error that a full disk may have caused

    os::Fd stdin_;
    StdinFifo fifo_;
    OutQueue stdin_queue_;
    bool stdin_ended_ = false;

    os::Fd walk_;  // takes the answer of the walk
    std::string walk_text_;
    int64_t walk_deadline_ms_ = 0;
};

}  // namespace cloister::agent
