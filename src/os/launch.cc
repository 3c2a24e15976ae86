#include "os/launch.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include "base/number.h"

namespace cloister::os {
namespace {

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
    std::vector<char*> pointers;
    for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

// Between fork and exec: system calls only. Answers errno's value of the first that failed.
bool become(const Identity& identity) {
    return ::setgroups(0, nullptr) == 0 &&
           ::setresgid(identity.gid, identity.gid, identity.gid) == 0 &&
           ::setresuid(identity.uid, identity.uid, identity.uid) == 0 &&
           ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

bool place_descriptors(const Program& program) {
    const int output = program.output != nullptr ? program.output->get() : STDERR_FILENO;
    if (::dup2(output, STDOUT_FILENO) < 0 || ::dup2(output, STDERR_FILENO) < 0) return false;
    if (program.ready == nullptr) return true;
    if (program.ready->get() == kReadyFd) return ::fcntl(kReadyFd, F_SETFD, 0) == 0;
    return ::dup2(program.ready->get(), kReadyFd) >= 0;
}

// What `nohup` ignores stays ignored: these are programs of our own.
void unblock_signals() {
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    std::signal(SIGPIPE, SIG_DFL);
}

// With our rights, for a program that lies where its user cannot go, such as a closed home
// directory. The number is none that the program gets. -1: errno says why.
int open_program(const char* path) {
    const int file = ::open(path, O_PATH | O_CLOEXEC);
    return file < 0 ? file : ::fcntl(file, F_DUPFD_CLOEXEC, kReadyFd + 1);
}

// The child's whole life before exec. A parent that died before the prctl is seen by getppid.
void become_program(const Program& program, char* const* argv, char* const* environment,
                    pid_t parent) {
    unblock_signals();
    const int file = open_program(argv[0]);
    if (file < 0 || ::setpgid(0, 0) != 0 || !place_descriptors(program)) return;
    if (program.identity && !become(*program.identity)) return;
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || ::getppid() != parent) return;
    ::execve(argv[0], argv, environment);
    if (errno == EACCES) ::syscall(SYS_execveat, file, "", argv, environment, AT_EMPTY_PATH);
}

Error launch_failure(const std::string& path, int error_number) {
    Error failure = os_failure("starting " + path, error_number);
    if (error_number == ENOENT) failure.kind = ErrorKind::NotFound;
    if (error_number == EACCES || error_number == EPERM) failure.kind = ErrorKind::PermissionDenied;
    return failure;
}

// The fields of /proc/PID/stat behind the command's name, which may hold anything.
std::vector<std::string> stat_fields(pid_t pid) {
    const auto text = read_file("/proc/" + std::to_string(pid) + "/stat", 8192);
    if (!text) return {};
    std::vector<std::string> fields;
    size_t at = text->rfind(')');
    while (at != std::string::npos && at + 1 < text->size()) {
        const size_t next = text->find(' ', at + 1);
        if (next > at + 1)
            fields.push_back(
                text->substr(at + 1, next == std::string::npos ? next : next - at - 1));
        at = next;
    }
    return fields;
}

}  // namespace

Result<Identity> find_identity(const std::string& user) {
    if (const auto uid = whole_number<uid_t>(user)) return Identity{.uid = *uid, .gid = *uid};
    const passwd* entry = ::getpwnam(user.c_str());
    if (entry == nullptr)
        return make_error(ErrorKind::NotFound, "there is no user `" + user + "` on this machine");
    return Identity{.uid = entry->pw_uid, .gid = entry->pw_gid};
}

std::optional<ProcessMark> mark_of(pid_t pid) {
    constexpr size_t kState = 0, kStartTime = 19;  // of what stands behind the name
    const std::vector<std::string> fields = stat_fields(pid);
    if (fields.size() <= kStartTime || fields[kState] == "Z" || fields[kState] == "X")
        return std::nullopt;
    const auto start_time = whole_number<uint64_t>(fields[kStartTime]);
    if (!start_time) return std::nullopt;
    return ProcessMark{.pid = pid, .start_time = *start_time};
}

bool is_running(const ProcessMark& mark) {
    const auto now = mark_of(mark.pid);
    return now && now->start_time == mark.start_time;
}

Result<Pidfd> open_process(const ProcessMark& mark) {
    Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, mark.pid, 0)));
    // Asked after the descriptor was opened, so that it cannot be of a successor.
    if (!fd.open() || !is_running(mark))
        return make_error(ErrorKind::NotFound, "that process has ended");
    return Pidfd(std::move(fd));
}

Result<bool> wait_for_end(const Pidfd& process, int64_t timeout_ms) {
    return wait_readable(process.fd(), timeout_ms);
}

Child::Child(Child&& other) noexcept
    : mark_(std::exchange(other.mark_, {})),
      process_(std::move(other.process_)),
      end_(other.end_) {}

Child& Child::operator=(Child&& other) noexcept {
    if (this == &other) return *this;
    kill_and_reap();
    mark_ = std::exchange(other.mark_, {});
    process_ = std::move(other.process_);
    end_ = other.end_;
    return *this;
}

Child::~Child() {
    kill_and_reap();
}

void Child::kill_and_reap() {
    if (mark_.pid == 0 || end_) return;
    (void)process_.signal(SIGKILL);  // a child of ours can always be killed
    ::waitpid(mark_.pid, nullptr, 0);
}

Result<Child> Child::launch(const Program& program) {
    Pipe report = TRY(make_pipe());
    const std::vector<char*> argv = pointers_to(program.argv);
    const std::vector<char*> environment = pointers_to(program.environment);
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) return last_os_failure("forking");
    if (pid == 0) {
        // The report's own number may be kReadyFd; it moves out of the way.
        const int report_fd = ::fcntl(report.write.get(), F_DUPFD_CLOEXEC, kReadyFd + 1);
        become_program(program, argv.data(), environment.data(), parent);
        const int failure = errno;
        (void)!::write(report_fd, &failure, sizeof(failure));
        ::_exit(127);
    }
    Child child;
    child.mark_ = mark_of(pid).value_or(ProcessMark{.pid = pid, .start_time = 0});
    child.process_ = Pidfd(Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))));
    report.write.reset();
    const std::string failure = TRY(read_all(report.read, sizeof(int)));
    if (failure.empty()) return child;
    int number = 0;
    failure.copy(reinterpret_cast<char*>(&number), sizeof(number));
    return launch_failure(program.argv.front(), number);
}

std::optional<ChildEnd> Child::end() {
    int status = 0;
    if (end_ || ::waitpid(mark_.pid, &status, WNOHANG) != mark_.pid) return end_;
    end_ = ChildEnd{.pid = mark_.pid,
                    .exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                    .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0};
    return end_;
}

ChildEnd Child::stop(int64_t grace_ms) {
    if (end()) return *end_;
    (void)process_.signal(SIGTERM);  // a child of ours can always be signalled
    const auto ended = wait_for_end(process_, grace_ms);
    if (!ended || !*ended) (void)process_.signal(SIGKILL);
    siginfo_t unused{};
    ::waitid(P_PID, static_cast<id_t>(mark_.pid), &unused, WEXITED | WNOWAIT);
    return end().value_or(ChildEnd{.pid = mark_.pid, .signal = SIGKILL});
}

Result<void> make_directory(const std::string& path, mode_t mode, Identity owner) {
    std::error_code failure;
    std::filesystem::create_directories(path, failure);
    if (failure) return os_failure("making the directory " + path, failure.value());
    const Fd directory = TRY(open_file(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    if (::fchown(directory.get(), owner.uid, owner.gid) != 0 ||
        ::fchmod(directory.get(), mode) != 0) {
        return last_os_failure("setting owner and mode of " + path);
    }
    return {};
}

Result<void> change_owner(const std::string& path, Identity owner) {
    if (::lchown(path.c_str(), owner.uid, owner.gid) != 0)
        return last_os_failure("setting the owner of " + path);
    return {};
}

Result<Detached> detach() {
    Pipe pipe = TRY(make_pipe());
    const Fd null = TRY(open_file("/dev/null", O_RDWR));
    const pid_t pid = ::fork();
    if (pid < 0) return last_os_failure("forking");
    if (pid > 0) return Detached{.side = Side::Parent, .pipe = std::move(pipe.read)};
    ::setsid();
    ::dup2(null.get(), STDIN_FILENO);
    return Detached{.side = Side::Daemon, .pipe = std::move(pipe.write)};
}

}  // namespace cloister::os
