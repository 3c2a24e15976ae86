#include "os/process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace cloister::os {
namespace {

Result<void> outcome_of(const std::function<Result<void>()>& work) {
    auto helper = Helper::start(work);
    if (!helper) return std::move(helper).error();
    pollfd polled{.fd = helper->done().get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&polled, 1, 10'000), 1);
    ::waitpid(-1, nullptr, 0);
    return helper->take_result();
}

TEST(Helper, AnswersHowItsWorkWent) {
    EXPECT_TRUE(outcome_of([] { return Result<void>(); }));
    const auto failed =
        outcome_of([]() -> Result<void> { return os_failure("making room", ENOSPC); });
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().kind, ErrorKind::ResourceExhausted);
    EXPECT_EQ(failed.error().os_error, ENOSPC);
    EXPECT_TRUE(failed.error().message.starts_with("making room: "));
}

TEST(Helper, ThatDiesIsAFailure) {
    const auto killed = outcome_of([]() -> Result<void> { ::_exit(0); });
    ASSERT_FALSE(killed);
    EXPECT_EQ(killed.error().kind, ErrorKind::Internal);
}

TEST(Helper, CutsALongMessage) {
    const auto failed = outcome_of(
        []() -> Result<void> { return make_error(ErrorKind::NotFound, std::string(10'000, 'x')); });
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().kind, ErrorKind::NotFound);
    EXPECT_LT(failed.error().message.size(), 1000u);
}

TEST(RunProgram, TellsSuccessFailureAndAMissingProgramApart) {
    EXPECT_TRUE(run_program({"true"}));
    EXPECT_EQ(run_program({"false"}).error().kind, ErrorKind::Internal);
    EXPECT_EQ(run_program({"cloister-no-such-program"}).error().kind,
              ErrorKind::FailedPrecondition);
}

TEST(Pidfd, SignalsItsProcessAndForgivesADeadOne) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        for (;;) ::pause();
    }
    const Pidfd pidfd(Fd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0))));
    ASSERT_TRUE(pidfd.open());
    EXPECT_TRUE(pidfd.signal(SIGKILL));
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(WTERMSIG(status), SIGKILL);
    EXPECT_TRUE(pidfd.signal(SIGKILL));
}

TEST(Reaping, ReportsEachChildOnce) {
    EXPECT_FALSE(reap_one().has_value());
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(7);
    std::optional<ChildEnd> end;
    while (!end) end = reap_one();
    EXPECT_EQ(end->pid, child);
    EXPECT_EQ(end->exit_code, 7);
    EXPECT_EQ(end->signal, 0);
    EXPECT_FALSE(reap_one().has_value());
}

TEST(SignalFd, TakesOneSignalAtATime) {
    const auto fd = make_signal_fd({SIGUSR1});
    ASSERT_TRUE(fd);
    EXPECT_EQ(take_signal(*fd), 0);
    ::kill(::getpid(), SIGUSR1);
    EXPECT_EQ(take_signal(*fd), SIGUSR1);
    EXPECT_EQ(take_signal(*fd), 0);
}

}  // namespace
}  // namespace cloister::os
