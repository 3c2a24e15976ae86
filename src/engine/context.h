// Context: a live interpreter in a sandbox, and the queue of runs before it: one run at a time, in
// order.
//
// The interpreter is started when that is asked for, else for the first run, and again for the
// first run after it was lost. Threading: the loop's thread; the coroutine that works through the
// queue keeps the context and its sandbox alive.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "base/limits.h"
#include "base/result.h"
#include "engine/agent.h"
#include "engine/run.h"

namespace cloister::engine {

class Sandbox;

// What an interpreter is to be.
struct ContextSpec {
    std::string language = "python";
    std::string cwd = "/home/user";  // where it begins
    StringMap env;                   // beside that of the sandbox, and before it
    // Default: for runs that name no context.
    enum class Origin { Asked, Default } origin = Origin::Asked;
};

enum class ContextState {
    Stopped,   // has no interpreter: the next run starts one
    Starting,  // its interpreter is being started
    Idle,
    Busy,  // a run has its interpreter
};
std::string_view to_string(ContextState state);

// The server kills a sandbox whose agent says nothing for so long after it had to stop a run: with
// what the kill takes, the run ends within a second of its timeout. An agent that says that it is
// at work gets more time.
inline constexpr int64_t kAgentSilenceMs = limits::kInterruptGraceMs + 200;
inline constexpr int64_t kAgentPatienceMs = 1'000;

class Context : public std::enable_shared_from_this<Context> {
  public:
    struct Name {
        std::string id;
        int64_t created_ms = 0;
    };
    Context(std::weak_ptr<Sandbox> sandbox, Name name, ContextSpec spec);

    const std::string& id() const { return name_.id; }
    const ContextSpec& spec() const { return spec_; }
    int64_t created_ms() const { return name_.created_ms; }
    ContextState state() const;
    // How its interpreter came to life; empty if it has none.
    const std::string& started_as() const { return started_as_; }
    size_t queued() const { return queue_.size(); }
    // The run that has the interpreter now, or null.
    const std::shared_ptr<Run>& active() const { return active_; }
    // Its interpreter lives already.
    void set_ready(std::string started_as);
    // Its interpreter is gone with all processes of the sandbox: the next run says why.
    void set_lost(std::string why);
    // ResourceExhausted if limits::kRunQueueMax runs wait already.
    Result<void> check_room() const;
    void submit(std::shared_ptr<Run> run);
    // Stops a run of this context: a queued one ends at once and never ran, a running one is
    // interrupted.
    static Task<void> stop(std::shared_ptr<Context> self, std::shared_ptr<Run> run,
                           EndReason reason);
    // Starts the interpreter if there is none; answers when it is ready for a run. Errors: why it
    // does not start.
    static Task<Result<void>> start_interpreter(std::shared_ptr<Context> self);
    // Ends the interpreter, and its run (`cancelled`), and starts a new one; the runs that wait go
    // on in that.
    static Task<Result<void>> restart(std::shared_ptr<Context> self);
    // Ends all of its runs (`cancelled`), and the interpreter.
    static Task<Result<void>> remove(std::shared_ptr<Context> self);

    bool busy() const { return working_; }
    size_t runs() const { return queue_.size() + (active_ ? 1 : 0); }
    // Every run that waits ends so; the active one ends when the agent's connection does.
    void end_queued(EndReason reason, const std::string& message);
    // Lets the active run come to its end without waiting for slow readers.
    void hurry();
    // Gives the agent's connection up: the active run ends now.
    void disconnect();
    // To be asked at guard_at(), by when the agent should have answered: an agent that is at work
    // on the run's end gets more time, readers are not waited for any more, then the sandbox has to
    // be killed, at last the connection is given up.
    enum class Guard { Fine, Kill };
    Guard check_guard(int64_t now_steady_ms);
    int64_t guard_at() const { return guard_at_; }

  private:
    static Task<void> work(std::shared_ptr<Context> self, std::shared_ptr<Sandbox> sandbox);
    Task<void> execute(std::shared_ptr<Sandbox> sandbox, std::shared_ptr<Run> run);
    Task<Result<void>> begin(Sandbox& sandbox, Run& run);
    Task<Result<void>> go_on_with(Sandbox& sandbox, Run& run);
    Task<Result<void>> make_ready(Sandbox& sandbox, Run& run);
    Task<Result<void>> write_files(Sandbox& sandbox, Run& run);
    Task<Result<void>> prepare(Sandbox& sandbox, Run& run);
    Task<Result<void>> launch(Sandbox& sandbox);
    Task<Result<void>> ask_for_interpreter(Sandbox& sandbox);
    Task<Result<void>> delete_interpreter(const Sandbox& sandbox);
    void wake_up();
    void number_queue();
    Task<Result<void>> start(Sandbox& sandbox, Run& run);
    Task<Result<void>> follow(Run& run);
    Task<Result<void>> send(Sandbox& sandbox, Run& run);
    Task<Result<void>> connect(Sandbox& sandbox);
    Task<Result<void>> first_event(Run& run);
    void note_disk(Run& run) const;
    void let_forget(const Sandbox& sandbox, const Run& run);
    void set_guard(int64_t after_ms);
    bool spare(Run& run);
    void settle(Sandbox& sandbox, Run& run, const Error& error);

    const Name name_;
    const ContextSpec spec_;
    const std::weak_ptr<Sandbox> sandbox_;
    std::deque<std::shared_ptr<Run>> queue_;
    std::shared_ptr<Run> active_;
    std::shared_ptr<AgentConnection> agent_;  // of the active run
    bool working_ = false;
    enum class Interpreter { None, Ready, Lost };
    Interpreter interpreter_ = Interpreter::None;
    bool start_asked_ = false, starting_ = false, removed_ = false;
    std::string lost_;
    Result<void> launched_;  // how the last start went
    Signal launch_signal_;
    std::string forget_;            // the run whose events the agent need not keep any more
    std::string started_as_;        // how the interpreter came to life
    bool spared_ = false;           // the guard has given the agent more time
    bool killed_ = false;           // the guard has asked for the sandbox's death
    int64_t guard_at_ = INT64_MAX;  // steady; moved by each phase of a run
};

}  // namespace cloister::engine
