// Supervisor: keeps the warden, egress and cloisterd running, in this order.
//
// Each is started again alone when it crashes: sandboxes outlive a warden, and cloisterd finds the
// new one, and asks a new egress to carry what the old one did. A cloisterd that ends with 0 was
// idle for long enough: the service ends. Single-threaded: one poll over what can happen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/log.h"
#include "os/fd.h"
#include "os/launch.h"
#include "programs/cli/log_file.h"
#include "programs/cli/restart_budget.h"

namespace cloister::cli {

struct SupervisorSettings {
    std::string data, listen, runtime, log_level;
    std::string domain;                       // empty: none
    std::string programs;                     // the directory of the programs
    std::string network;                      // settings of the network, as JSON
    std::string ca_bundle;                    // certificates for every sandbox, or empty
    os::Identity server;                      // who cloisterd runs as
    std::string key;                          // API key that must work
    int64_t idle_exit_ms = 0;                 // 0: never
    std::vector<std::string> require_limits;  // that the host must be able to enforce
    std::vector<std::string> server_options;  // of cloisterd, as they are
};

class Supervisor {
  public:
    // `signals` tells SIGTERM and SIGINT (os::make_signal_fd). With `log`, what the programs write
    // goes there.
    static Result<Supervisor> create(SupervisorSettings settings, os::Fd signals,
                                     std::optional<LogFile> log);

    // Starts both programs and answers the service's URL. Cancelled if it was asked to stop
    // meanwhile.
    Result<std::string> start();
    // Until a signal, the idle end, or too many crashes; answers the exit code. Nothing runs
    // afterwards.
    int run();

  private:
    enum class Happened {
        StopAsked,
        WardenEnded,
        EgressEnded,
        ServerEnded,
        ReadyReadable,
        Nothing
    };

    Supervisor(SupervisorSettings settings, os::Fd signals)
        : settings_(std::move(settings)), signals_(std::move(signals)) {}

    // What happens first; `ready` is watched if it is open. Children's log lines are passed on
    // meanwhile.
    Happened wait(int64_t timeout_ms, const os::Fd& ready);
    void pass_logs_on();
    Result<void> start_warden();
    Result<void> start_egress();
    Result<void> start_server();
    Result<void> start_missing();
    Result<std::string> read_port(const os::Fd& ready);
    Result<void> record() const;
    // Answers the exit code when the service is over.
    std::optional<int> handle(Happened happened);
    std::optional<int> restart(std::string_view program, const os::ChildEnd& end);
    int stop_all();
    os::Program program_of(std::string_view name) const;

    SupervisorSettings settings_;
    os::Fd signals_;
    std::optional<LogFile> log_;
    os::Pipe log_pipe_;
    std::optional<os::Child> warden_, egress_, server_;
    RestartBudget budget_;
    std::string failpoint_;  // of a test (base/failpoint.h), until a program has died
};

// "http://127.0.0.1:8000" for what listens on "127.0.0.1:8000"; an address for all interfaces is
// reached by loopback.
std::string url_of(std::string_view listen);

}  // namespace cloister::cli
