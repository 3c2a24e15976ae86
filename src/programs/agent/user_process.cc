#include "programs/agent/user_process.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <set>

#include "os/privileges.h"
#include "os/process.h"

namespace cloister::agent {
namespace {

// The children of a fork bomb may be born while we look: look again, but not for ever.
constexpr int kKillRounds = 8;
// Where a child keeps the pipe for its failure: above all numbers that a program gets.
constexpr int kReportFd = 64;

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    pointers.reserve(texts.size() + 1);
    for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

// The agent has more of them than the sandbox's programs.
void limit_files() {
    rlimit now{};
    ::getrlimit(RLIMIT_NOFILE, &now);
    now.rlim_cur = std::min<rlim_t>(now.rlim_max, kFilesOfPrograms);
    ::setrlimit(RLIMIT_NOFILE, &now);
}

void limit_cores() {
    // Limit 1 and not 0: a handler that takes cores through a pipe ignores 0. The soft limit can
    // only go down from what the sandbox was born with.
    rlimit now{};
    ::getrlimit(RLIMIT_CORE, &now);
    const rlim_t most = std::min<rlim_t>(now.rlim_max, 1);
    const rlimit wanted{.rlim_cur = most, .rlim_max = most};
    ::setrlimit(RLIMIT_CORE, &wanted);
}

// Moves `fds` to 0, 1, 2 …; first far up, so that none is overwritten before it was moved.
bool arrange_fds(const std::vector<const os::Fd*>& fds, int first_high, std::vector<int>& high) {
    for (size_t i = 0; i < fds.size(); ++i) {
        high[i] = ::fcntl(fds[i]->get(), F_DUPFD_CLOEXEC, first_high);
        if (high[i] < 0) return false;
    }
    for (size_t i = 0; i < fds.size(); ++i) {
        if (::dup2(high[i], static_cast<int>(i)) < 0) return false;
    }
    return true;
}

// What lies at the path may be anything: it is not waited for, and only a file is taken.
const char* open_stdin(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    struct stat facts{};
    if (fd < 0 || ::fstat(fd, &facts) != 0) return "opening the stdin";
    if (!S_ISREG(facts.st_mode)) {
        errno = S_ISDIR(facts.st_mode) ? EISDIR : EINVAL;
        return "opening the stdin (it must be a file)";
    }
    ::fcntl(fd, F_SETFL, 0);
    return ::dup2(fd, 0) == 0 ? nullptr : "arranging the stdin";
}

// As a shell would find it. Returns only with a failure, in errno.
void execute_by_name(const Program& program, char* const* argv, char* const* env) {
    if (program.argv[0].find('/') != std::string::npos) {
        ::execve(argv[0], argv, env);
        return;
    }
    std::string_view path = "/usr/local/bin:/usr/bin:/bin";
    for (const std::string& entry : program.env) {
        if (entry.starts_with("PATH=")) path = std::string_view(entry).substr(5);
    }
    int failure = ENOENT;
    while (!path.empty()) {
        const std::string_view directory = path.substr(0, path.find(':'));
        path.remove_prefix(std::min(path.size(), directory.size() + 1));
        const std::string full = std::string(directory) + "/" + program.argv[0];
        ::execve(full.c_str(), argv, env);
        if (errno == EACCES) failure = EACCES;
        if (errno != EACCES && errno != ENOENT && errno != ENOTDIR) return;
    }
    errno = failure;
}

Result<pid_t> fork_child() {
    const pid_t pid = ::fork();
    if (pid < 0) return last_os_failure("forking in the agent");
    return pid;
}

// SIGKILL for the processes that `chosen` names. They are stopped first: a process that is killed
// makes room for another one, so that a fork bomb under its limit would outrun us.
void kill_chosen(const std::function<bool(const os::ProcessTable&, pid_t)>& chosen) {
    std::set<pid_t> stopped;
    size_t before = 0;
    int round = 0;
    do {
        before = stopped.size();
        const os::ProcessTable table = os::read_process_table();
        for (const auto& [pid, facts] : table) {
            if (chosen(table, pid) && stopped.insert(pid).second) ::kill(pid, SIGSTOP);
        }
    } while (stopped.size() > before && ++round < kKillRounds);
    for (const pid_t pid : stopped) ::kill(pid, SIGKILL);
}

}  // namespace

void kill_family(pid_t leader) {
    // Stopped first, and killed last: its children would lose their ancestor with it.
    ::kill(leader, SIGSTOP);
    kill_chosen([leader](const os::ProcessTable& table, pid_t pid) {
        return os::descends(table, pid, leader);
    });
    ::kill(-leader, SIGKILL);
    ::kill(leader, SIGKILL);
}

void kill_session(pid_t session) {
    kill_chosen([session](const os::ProcessTable& table, pid_t pid) {
        return table.at(pid).session == session;
    });
}

void kill_started_since(const os::BirthMark& mark, pid_t leader, const std::vector<pid_t>& others) {
    // All of the sandbox's processes descend from the agent, its first process: orphans become its
    // children.
    const pid_t agent = ::getpid();
    const auto of_another = [&others](const os::ProcessTable& table, pid_t pid) {
        return std::ranges::any_of(
            others, [&](pid_t other) { return pid == other || os::descends(table, pid, other); });
    };
    kill_chosen([&](const os::ProcessTable& table, pid_t pid) {
        return mark.is_before(pid, table.at(pid)) && pid != leader &&
               os::descends(table, pid, agent) && !of_another(table, pid);
    });
}

void kill_everything() {
    const pid_t agent = ::getpid();
    if (agent == 1) {
        ::kill(-1, SIGKILL);  // one call, which no fork outruns
    } else {
        // Not the first process of its namespace, as in tests: -1 would be the whole machine.
        kill_chosen([agent](const os::ProcessTable& table, pid_t pid) {
            return os::descends(table, pid, agent);
        });
    }
}

const char* UserProcesses::become(Identity identity) const {
    const bool root = identity == Identity::Root;
    const uint64_t kept = root ? os::capability_bits(os::kInsideRootCapabilities) : 0;
    for (const os::Fd& procs : birth_.procs) {
        if (::write(procs.get(), "0", 1) != 1) return "entering the sandbox's cgroup";
    }
    if (::setsid() < 0) return "starting a session";
    limit_cores();
    limit_files();
    ::umask(022);
    errno = os::drop_capability_bounds(kept);
    if (errno != 0) return "dropping capabilities";
    errno = os::become_id(root ? 0 : limits::kUserId, kept);
    if (errno != 0) return "becoming the user";
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return "setting no_new_privs";
    return nullptr;
}

const char* UserProcesses::prepare(const Program& program, int report) const {
    if (const char* failed = become(program.identity)) return failed;
    if (::chdir(program.cwd.c_str()) != 0) return "entering the working directory";
    std::vector<int> high(program.fds.size());
    if (!arrange_fds(program.fds, report + 1, high)) return "arranging descriptors";
    if (!program.stdin_path.empty()) {
        if (const char* failed = open_stdin(program.stdin_path)) return failed;
    }
    if (program.terminal == Program::Terminal::Yes && ::ioctl(0, TIOCSCTTY, 0) != 0) {
        return "taking the terminal";
    }
    ::close_range(static_cast<unsigned>(program.fds.size()), static_cast<unsigned>(report) - 1, 0);
    ::close_range(static_cast<unsigned>(report) + 1, ~0U, 0);
    os::reset_signals();
    return load_final_filter();
}

const char* UserProcesses::load_final_filter() const {
    const std::string& filter = birth_.final_filter;
    if (filter.empty()) return nullptr;
    errno = os::load_filter(filter.data(), filter.size());
    return errno == 0 ? nullptr : "loading the filter of system calls";
}

void UserProcesses::execute(const Program& program, const os::Fd& failure) const {
    const std::vector<char*> argv = pointers_to(program.argv), env = pointers_to(program.env);
    const int report = ::fcntl(failure.get(), F_DUPFD_CLOEXEC, kReportFd);
    if (const char* failed = prepare(program, report)) {
        ::dprintf(report, "%s: %s", failed, std::strerror(errno));
    } else {
        execute_by_name(program, argv.data(), env.data());
        ::dprintf(report, "executing %s: %s", argv[0], std::strerror(errno));
    }
    ::_exit(127);
}

Result<pid_t> UserProcesses::start(const Program& program, os::Fd& failure) const {
    os::Pipe report = TRY(os::make_pipe(os::Blocking::No));
    const pid_t pid = TRY(fork_child());
    if (pid == 0) execute(program, report.write);
    failure = std::move(report.read);
    return pid;
}

Result<pid_t> UserProcesses::start_worker(Identity identity, const os::Fd& kept,
                                          const std::function<void(os::Fd)>& work) const {
    constexpr int kKept = 3;
    const pid_t pid = TRY(fork_child());
    if (pid > 0) return pid;
    if (become(identity) != nullptr || ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) ::_exit(127);
    if (::dup2(kept.get(), kKept) < 0) ::_exit(127);
    ::close_range(kKept + 1, ~0U, 0);
    os::reset_signals();
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGCHLD, SIG_IGN);  // children of a worker are reaped by the kernel
    if (load_final_filter() != nullptr) ::_exit(127);
    work(os::Fd(kKept));
    ::_exit(0);
}

}  // namespace cloister::agent
