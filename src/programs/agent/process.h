// Process: one program that a client started in the sandbox, with pipes or a terminal. It belongs
// to nobody's connection: what it writes is kept (ProcessOutput), and any number of clients may
// read it, at any time, from any byte on.
//
//     auto process = TRY(Process::start(std::move(op), parts));
//     process->on_started = [](const Result<void>& result) { … };   // it executes, or why not
//     process->attach(connection, {…});
//     … process->on_child_end(end), process->tick(steady_ms()), process->tend() …
//
// It has ended when its first process has: what was in its pipes then belongs to it. Children that
// live on and hold the pipes delay nothing; what they write later is thrown away.
//
// A reader that had caught up and falls behind slows the program down; one that still catches up,
// or that is not there, does not.
#pragma once

#include <array>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "os/poller.h"
#include "os/process.h"
#include "programs/agent/buffers.h"
#include "programs/agent/connection.h"
#include "programs/agent/operations.h"
#include "programs/agent/process_output.h"
#include "programs/agent/terminal.h"
#include "programs/agent/usage.h"
#include "programs/agent/user_process.h"

namespace cloister::agent {

struct ProcessParts {
    const UserProcesses& processes;
    const UsageMeter& meter;
    os::Poller& poller;
    SpoolRoom& room;
};

class Process {
  public:
    // `env`: all of it. Errors: no process or descriptor left.
    static Result<std::unique_ptr<Process>> start(StartProcess op, const StringMap& env,
                                                  const ProcessParts& parts);
    ~Process();
    Process(const Process&) = delete;

    // Called once.
    std::function<void(const Result<void>&)> on_started;

    const std::string& id() const { return op_.process; }
    pid_t pid() const { return pid_; }
    bool starting() const { return state_ == State::Starting; }
    bool running() const { return state_ != State::Ended; }
    bool never_ran() const { return never_ran_; }
    bool has_readers() const { return !readers_.empty(); }
    // One JSON object.
    std::string info() const;

    void attach(Connection& client, const AttachProcess& op);
    // Takes the stdin frames of this client.
    Result<void> take_stdin(Connection& client, const WriteStdin& op);
    Result<void> signal(int number);
    Result<void> resize(TerminalSize size);
    void kill();  // it, and all that descends from it

    void on_child_end(const os::ChildEnd& end);
    std::optional<int64_t> next_deadline() const;
    void tick(int64_t now_ms);
    // Sends on what readers have room for, and reads on if it had to wait for them.
    void tend();
    ProcessOutput& output() { return output_; }

  private:
    enum class State { Starting, Running, Ended };
    struct Stream {
        FrameKind kind = FrameKind::Stdout;
        os::Fd fd;
        std::string begun;  // bytes of a character that is not whole yet: frames do not cut any
    };
    struct Reader {
        Connection* client;
        ProcessOutput::Cursor cursor;
        bool live = false;  // has caught up once
    };
    struct Writer {
        Connection* client;
        WriteStdin::End end;
        uint64_t bytes = 0;
        bool refused = false;  // bytes came that nobody reads any more
    };
    struct Ends {
        os::Fd in, out, err;
    };

    Process(StartProcess op, const ProcessParts& parts);
    Result<Ends> make_ends();
    Result<void> execute(const StringMap& env);
    void on_failure_pipe();
    void watch();
    void unwatch(os::Fd& fd);
    // --- output ---
    void on_stream(Stream& stream);
    // Reads and keeps at most `most` bytes; 0 if there are none now.
    size_t pass_on(Stream& stream, size_t most);
    void keep(Stream& stream, std::string_view bytes);
    bool takes_output() const;
    void update_interest();
    void drain(Stream& stream);
    void feed(Reader& reader);
    std::string ended_event() const;
    // --- stdin ---
    bool reads_stdin() const;
    void on_stdin_frame(Writer& writer, const HeldMessage& frame);
    void let_writers_go_on() const;
    void write_stdin();
    void end_stdin();
    void finish_writer(Writer& writer, const Result<void>& result);
    // --- the end ---
    void note_end(const os::ChildEnd& end);
    std::string end_fields() const;

    StartProcess op_;
    const ProcessParts parts_;
    State state_ = State::Starting;
    bool never_ran_ = false;
    pid_t pid_ = -1;
    os::Fd failure_;
    std::array<Stream, 2> streams_;
    bool held_ = false;
    ProcessOutput output_;
    ScreenWatch screen_;
    std::list<Reader> readers_;

    os::Fd stdin_;  // of pipes; a terminal's is streams_[0]
    OutQueue stdin_queue_;
    bool stdin_ended_ = false;
    std::list<Writer> writers_;

    uint64_t oom_kills_before_ = 0;
    int64_t started_ms_ = 0, ended_ms_ = 0;  // since the epoch
    int64_t deadline_ms_ = 0;                // steady; 0: none
    bool timed_out_ = false, killed_ = false;
    int exit_code_ = 0, signal_ = 0;
    std::string_view reason_;
    std::string message_;
};

}  // namespace cloister::agent
