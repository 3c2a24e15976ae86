#include "os/process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace cloister::os {
namespace {

// What a helper writes before it ends.
struct HelperAnswer {
    int32_t kind = -1;  // an ErrorKind, or -1: it went well
    int32_t os_error = 0;
    std::array<char, 512> message{};
};

HelperAnswer answer_of(const Result<void>& result) {
    HelperAnswer answer;
    if (result) return answer;
    answer.kind = static_cast<int32_t>(result.error().kind);
    answer.os_error = result.error().os_error;
    const std::string_view text = result.error().message;
    std::ranges::copy(text.substr(0, answer.message.size() - 1), answer.message.begin());
    return answer;
}

std::vector<char*> pointers_to(const std::vector<std::string>& argv) {
    std::vector<char*> pointers;
    pointers.reserve(argv.size() + 1);
    for (const std::string& argument : argv)
        pointers.push_back(const_cast<char*>(argument.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

[[noreturn]] void execute(char* const* argv) {
    std::array<char*, 2> environment{const_cast<char*>("PATH=/usr/sbin:/usr/bin:/sbin:/bin"),
                                     nullptr};
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // it works for us, and must not go on without us
    ::dup2(::open("/dev/null", O_RDWR | O_CLOEXEC), STDOUT_FILENO);
    ::execvpe(argv[0], argv, environment.data());
    ::_exit(127);
}

Result<int> wait_for(pid_t pid) {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) return last_os_failure("waiting for a program");
    }
    return status;
}

}  // namespace

Result<void> Pidfd::signal(int number) const {
    if (::syscall(SYS_pidfd_send_signal, fd_.get(), number, nullptr, 0) == 0) return {};
    if (errno == ESRCH) return {};
    return last_os_failure("signalling a process");
}

void reset_signals() {
    for (int number = 1; number < NSIG; ++number) std::signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

Result<void> run_program(const std::vector<std::string>& argv) {
    const std::vector<char*> pointers = pointers_to(argv);
    const pid_t pid = ::fork();
    if (pid < 0) return last_os_failure("starting " + argv[0]);
    if (pid == 0) execute(pointers.data());
    const int status = TRY(wait_for(pid));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
        return make_error(ErrorKind::FailedPrecondition,
                          "cannot run " + argv[0] + ": install the package that brings it");
    }
    return make_error(ErrorKind::Internal, argv[0] + " failed; its output says why");
}

Result<Helper> Helper::start(const std::function<Result<void>()>& work) {
    Pipe pipe = TRY(make_pipe());
    const pid_t self = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) return last_os_failure("forking a helper");
    if (pid == 0) {
        die_with(self);
        const HelperAnswer answer = answer_of(work());
        const ssize_t put = ::write(pipe.write.get(), &answer, sizeof(answer));
        ::_exit(put == sizeof(answer) ? 0 : 1);
    }
    return Helper(std::move(pipe.read));
}

Result<void> Helper::take_result() const {
    HelperAnswer answer;
    if (::read(pipe_.get(), &answer, sizeof(answer)) != sizeof(answer)) {
        return make_error(ErrorKind::Internal, "a helper died before it could answer");
    }
    if (answer.kind < 0) return {};
    return Error{.kind = static_cast<ErrorKind>(answer.kind),
                 .message = answer.message.data(),
                 .field = {},
                 .os_error = answer.os_error};
}

std::optional<ChildEnd> reap_one() {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG | __WALL);
    if (pid <= 0) return std::nullopt;
    return ChildEnd{.pid = pid,
                    .exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                    .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0};
}

void die_with(pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);  // it died before the call above
}

void reap_all() {
    while (::waitpid(-1, nullptr, __WALL) > 0 || errno == EINTR) continue;
}

Result<Fd> make_signal_fd(const std::vector<int>& signals) {
    sigset_t set;
    sigemptyset(&set);
    for (int number : signals) sigaddset(&set, number);
    if (::sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return last_os_failure("blocking signals");
    Fd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd.open()) return last_os_failure("making a signal descriptor");
    return fd;
}

int take_signal(const Fd& signal_fd) {
    signalfd_siginfo info{};
    if (::read(signal_fd.get(), &info, sizeof(info)) != sizeof(info)) return 0;
    return static_cast<int>(info.ssi_signo);
}

}  // namespace cloister::os
