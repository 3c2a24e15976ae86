// Kernel: one interpreter process with its driver (contract/agent-protocol.md, "Interpreter
// drivers"): its pipes, its messages, and signals to it.
//
// Order: whatever was in the pipes when a message arrived is passed on before the message. That
// much and no more, so that a program in the background that writes without end delays nothing.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "os/poller.h"
#include "os/process.h"
#include "programs/agent/buffers.h"
#include "programs/agent/driver.h"
#include "programs/agent/json_slice.h"
#include "programs/agent/user_process.h"
#include "programs/agent/zygote_door.h"
#include "wire/frame.h"
#include "wire/json.h"

namespace cloister::agent {

// A message of a driver: slices of `held`.
struct DriverMessage {
    HeldMessage held;
    std::string_view type;
    std::vector<JsonMember> content;
};

// Who gets what an interpreter says during a run. Between runs it is thrown away.
class KernelListener {
  public:
    virtual ~KernelListener() = default;
    virtual void on_output(FrameKind stream, std::string_view bytes) = 0;
    virtual void on_message(const DriverMessage& message) = 0;
    // The process has ended, and all that it had written was passed on.
    virtual void on_death(const os::ChildEnd& end) = 0;
    // Whether more can be taken now.
    virtual bool takes_output() const = 0;
};

struct KernelPlan {
    Driver driver;
    StringMap env;
    std::string cwd;
    bool may_fork = false;  // else it is executed
};

// Where interpreters come from.
struct KernelSources {
    const UserProcesses& processes;
    const ZygoteDoor& zygote;
};

class Kernel {
  public:
    // A forked interpreter that does not come is replaced by an executed one: no caller notices but
    // by the time that it takes.
    static Result<std::unique_ptr<Kernel>> start(KernelPlan plan, const KernelSources& sources,
                                                 os::Poller& poller, Budget& budget);
    ~Kernel();
    Kernel(const Kernel&) = delete;

    // Called once: the driver is ready for a run, or died before (with its last words).
    std::function<void(Result<void>)> on_started;

    void set_listener(KernelListener* listener) { listener_ = listener; }
    // Sends one message, put together from texts and slices of `message`, and at most one
    // descriptor with it (a closed one: none).
    Result<void> send(const HeldMessage& message, std::initializer_list<std::string_view> parts,
                      const os::Fd& passed);
    void interrupt();  // SIGINT to its process group, and a message if its driver wants one
    void kill();       // SIGKILL to it and all that descend from it
    // Goes on if it had to stop for the listener or for memory, and need not any more. Call it now
    // and then: it is no work if there is nothing to do.
    void go_on();
    // When to call tick() for a forked interpreter that is late.
    std::optional<int64_t> fork_deadline() const;
    void tick(int64_t now_ms);
    // Its process has ended: passes on what is left, then tells the listener.
    void on_child_end(const os::ChildEnd& end);

    const Driver& driver() const { return plan_.driver; }
    pid_t pid() const { return pid_; }  // -1 while it is asked for
    bool forked() const { return fork_ != Fork::None; }
    bool is_dead() const { return dead_; }
    // Whether an interrupt that is sent after a request reaches its code in any case, also before
    // the driver says that it is busy.
    bool takes_early_interrupts() const { return takes_early_interrupts_; }
    // Whether it was killed because its driver sent nonsense.
    bool driver_broke() const { return driver_broke_; }

  private:
    struct Stream {
        FrameKind kind = FrameKind::Stdout;
        os::Fd pipe;
        size_t owed = 0;  // bytes to pass on before the message that waits
    };

    enum class Fork { None, Asked, Done };
    // The interpreter's ends of what is ours here.
    struct Ends {
        os::Fd out, err, control;
    };

    Kernel(KernelPlan plan, const KernelSources& sources, os::Poller& poller, Budget& budget);
    Result<Ends> make_ends();
    Result<void> execute();
    Result<void> ask_for_fork();
    void admit_fork();
    void execute_instead();
    void never_started(const Error& error);
    void watch_all();
    void unwatch_all();
    bool takes_output() const { return listener_ == nullptr || listener_->takes_output(); }
    void on_stream(Stream& stream);
    // Reads at most `most` bytes and passes them on; 0 if there are none.
    size_t pass_on(Stream& stream, size_t most);
    void on_control();
    void read_message();
    // Passes on the output that the waiting message owes, then the message.
    void settle();
    bool pay_debts();
    void owe_what_is_there();
    void dispatch(const DriverMessage& message);
    void drain();
    void break_off();
    void update_interest();
    void remember_last_words(std::string_view bytes);
    std::string last_words() const;

    const KernelPlan plan_;
    const KernelSources sources_;
    os::Poller& poller_;
    Budget& budget_;
    pid_t pid_ = -1;
    Fork fork_ = Fork::None;
    int64_t fork_deadline_ms_ = 0;  // 0: none, or it has come
    std::array<Stream, 2> streams_;
    os::Fd control_;
    os::Fd failure_;  // says why the program could not be executed
    std::optional<MessageReader> reader_;
    OutQueue to_driver_;
    HeldMessage waiting_;  // a message that arrived, but not its turn yet
    KernelListener* listener_ = nullptr;
    std::string words_;  // the end of what it wrote before it was ready
    bool started_ = false;
    bool takes_early_interrupts_ = false;
    bool starved_ = false;  // a message waits for memory
    bool held_ = false;     // everything waits for the listener
    bool driver_broke_ = false;
    bool control_closed_ = false;
    bool dead_ = false;
};

}  // namespace cloister::agent
