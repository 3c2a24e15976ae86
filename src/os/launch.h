// Programs that a supervisor starts and watches, and the supervisor's own place in the system.
//
// Threading: for single-threaded programs, since fork copies one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "os/fd.h"
#include "os/process.h"

namespace cloister::os {

struct Identity {
    uid_t uid = 0;
    gid_t gid = 0;
};
// A user by name, or by number (whose group then has the same number). NotFound for an unknown
// name.
Result<Identity> find_identity(const std::string& user);

// A process that can be told from a later one with the same number.
struct ProcessMark {
    pid_t pid = 0;
    uint64_t start_time = 0;  // in the kernel's ticks since boot
};
// nullopt if there is no such process (a dead one that nobody has reaped counts as none).
std::optional<ProcessMark> mark_of(pid_t pid);
bool is_running(const ProcessMark& mark);
// A descriptor of that very process; NotFound if it is gone.
Result<Pidfd> open_process(const ProcessMark& mark);
// Waits until it is dead; false if `timeout_ms` passed first.
Result<bool> wait_for_end(const Pidfd& process, int64_t timeout_ms);

inline constexpr int kReadyFd = 3;

struct Program {
    std::vector<std::string> argv;         // the first is the path
    std::vector<std::string> environment;  // "NAME=value"
    // Runs as this user without any privilege, and cannot gain one.
    std::optional<Identity> identity = std::nullopt;
    const Fd* output = nullptr;  // takes stdout and stderr; else both go to our stderr
    const Fd* ready = nullptr;   // becomes descriptor kReadyFd
};

// A running child in a process group of its own. It is killed when this object goes, and when we
// die: unlike SIGTERM, which asks it to tidy up for good, that leaves its successor all it had.
class Child {
  public:
    Child(Child&& other) noexcept;
    Child& operator=(Child&& other) noexcept;
    ~Child();

    // NotFound or PermissionDenied if the program cannot be executed.
    static Result<Child> launch(const Program& program);

    const ProcessMark& mark() const { return mark_; }
    const Pidfd& process() const { return process_; }  // readable when it has ended
    // How it ended; nullopt while it runs.
    std::optional<ChildEnd> end();
    // SIGTERM, and SIGKILL after `grace_ms`; waits for the end.
    ChildEnd stop(int64_t grace_ms);

  private:
    Child() = default;
    void kill_and_reap();

    ProcessMark mark_;
    Pidfd process_;
    std::optional<ChildEnd> end_;
};

// A directory with this owner and mode, made with its parents if missing.
Result<void> make_directory(const std::string& path, mode_t mode, Identity owner);
Result<void> change_owner(const std::string& path, Identity owner);

enum class Side { Parent, Daemon };
struct Detached {
    Side side = Side::Parent;
    Fd pipe;  // the daemon writes what the parent reads to its end
};
// Forks: the copy goes on as a daemon, in a session of its own, with nothing on standard input.
Result<Detached> detach();

}  // namespace cloister::os
