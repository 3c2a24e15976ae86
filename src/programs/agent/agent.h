// Agent: pid 1 of a sandbox. It answers the operations of contract/agent-protocol.md, owns the
// contexts, and reaps whatever dies. One thread; it waits in one place only (serve), and never for
// a client, an interpreter or a disk.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "programs/agent/birth_record.h"
#include "programs/agent/connection.h"
#include "programs/agent/driver.h"
#include "programs/agent/file_helper.h"
#include "programs/agent/kernel.h"
#include "programs/agent/oom_watch.h"
#include "programs/agent/operations.h"
#include "programs/agent/port_door.h"
#include "programs/agent/proc_view.h"
#include "programs/agent/processes.h"
#include "programs/agent/root_door.h"
#include "programs/agent/run.h"
#include "programs/agent/run_stream.h"
#include "programs/agent/user_process.h"
#include "programs/agent/zygote_door.h"
#include "wire/user_environment.h"

namespace cloister::agent {

// What the driver says about the option stands in its main.js.
inline Driver node_driver(const std::string& language) {
    return {.argv = {"/usr/bin/node", "--no-force-async-hooks-checks",
                     "/opt/cloister/kernels/node/main.js", language},
            .interrupt = Interrupt::SignalAndMessage,
            .fifo_directory = "/run/cloister"};
}

inline Driver java_driver() {
    return {.argv = {"/bin/sh", "/opt/cloister/kernels/java/start.sh"},
            .interrupt = Interrupt::Signal,
            .fifo_directory = "/run/cloister"};
}

// The bridge to a kernel of Jupyter; its kernelspec is NAME of `jupyter:NAME`.
inline Driver jupyter_driver(std::string_view kernelspec) {
    return {.argv = {"/usr/bin/python3", "/opt/cloister/kernels/jupyter/cloister_jupyter",
                     std::string(kernelspec)},
            .interrupt = Interrupt::Signal,
            .fifo_directory = {}};
}

struct Settings {
    std::string home{kUserHome};
    std::string root_socket{kRootSocket};
    // The driver of each language of wire/languages.h.
    std::map<std::string, Driver> drivers = {
        {"python",
         {.argv = {"/usr/bin/python3", "/opt/cloister/kernels/python/cloister_kernel"},
          .forkable = true}},
        {"javascript", node_driver("javascript")},
        {"typescript", node_driver("typescript")},
        {"bash", {.argv = {"/opt/cloister/bin/cloister-shell", "/opt/cloister/kernels/bash"}}},
        {"r", jupyter_driver("ir")},
        {"java", java_driver()},
    };
};

class Agent {
  public:
    Agent(Birth birth, Settings settings);
    // Serves for ever; returns only with a failure of its own.
    Result<void> serve();

  private:
    struct Context {
        std::string id;
        std::string language;
        std::string cwd;
        std::unique_ptr<Kernel> kernel;
        std::unique_ptr<Run> run;         // after kernel: it goes first
        Connection* preparing = nullptr;  // the client that waits until it is ready
        int64_t start_deadline_ms = 0;    // 0: it has started
        bool deleted = false;             // no longer found; goes when its process is gone
    };

    Result<void> open();
    void accept_clients();
    void await_operation(Connection& client);
    void reap();
    int wait_ms() const;
    // Whether any code of ours runs: then the figures in /proc are kept up to date.
    bool is_active() const;
    void tick();
    void sweep();
    Context* find(std::string_view id);
    Result<Driver> driver_of(const std::string& language) const;

    void on_first_frame(Connection& client, const HeldMessage& frame);
    void answer(Connection& client, const Result<void>& result);
    // One function for each operation; a result is answered at once, unless it says otherwise.
    void handle(Connection& client, const Hello& op);
    void handle(Connection& client, const PrepareContext& op);
    void handle(Connection& client, const DeleteContext& op);
    void handle(Connection& client, const RunCode& op);
    void handle(Connection& client, const InterruptRun& op);
    void handle(Connection& client, const AttachRun& op);
    void handle(Connection& client, const ForgetRun& op);
    void handle(Connection& client, const ReadOutput& op);
    void handle(Connection& client, const GetState& op);
    void handle(Connection& client, const FileOperation& op);
    void handle(Connection& client, const StartProcess& op);
    void handle(Connection& client, const AttachProcess& op);
    void handle(Connection& client, const WriteStdin& op);
    void handle(Connection& client, const SignalProcess& op);
    void handle(Connection& client, const ResizeProcess& op);
    void handle(Connection& client, const ListProcesses& op);
    void handle(Connection& client, const GetProcess& op);
    void handle(Connection& client, const RemoveProcess& op);
    void handle(Connection& client, const ConnectPort& op);
    void handle(Connection& client, const PublishPort& op);
    void handle(Connection& client, const ListPorts& op);
    Result<void> prepare(Connection& client, const PrepareContext& op);
    static void await_start(Context& context, Connection& client);
    Result<void> start_kernel(Connection& client, const PrepareContext& op, const Driver& driver);
    Result<void> run(Connection& client, const RunCode& op);
    void on_started(Context& context, const Result<void>& result);
    std::vector<pid_t> families_without(const Context& context) const;
    StringMap environment(const std::string& cwd, const StringMap& own) const;
    StringMap environment(const StartProcess& op) const;

    Birth birth_;
    const Settings settings_;
    os::Poller poller_;
    os::Fd signals_;
    // Large requests, and large messages of interpreters: one at a time each.
    Budget requests_, displays_;
    UserProcesses user_processes_;
    ZygoteDoor zygote_;
    UsageMeter meter_;
    OomWatch oom_;
    FileHelper files_, root_files_;
    ProcView view_;
    RootDoor root_door_;
    std::list<std::unique_ptr<Connection>> connections_;
    RunStreams streams_;  // after connections: they let their clients go
    Processes processes_;
    PortDoor ports_;
    std::list<std::unique_ptr<Context>> contexts_;
};

}  // namespace cloister::agent
