#include "os/launch.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "base/time.h"

namespace cloister::os {
namespace {

constexpr size_t kOutputMax = 10'000;

struct Outcome {
    std::string output;
    ChildEnd end;
};

Outcome run_shell(const std::string& script, Program program = {}) {
    Pipe pipe = make_pipe().value();
    program.argv = {"/bin/sh", "-c", script};
    program.environment.push_back("PATH=/usr/bin:/bin");
    program.output = &pipe.write;
    Child child = Child::launch(program).value();
    pipe.write.reset();
    std::string output = read_all(pipe.read, kOutputMax).value();
    EXPECT_TRUE(wait_for_end(child.process(), 5000).value());
    return {std::move(output), child.end().value()};
}

TEST(Launch, GivesEnvironmentOutputAndExitCode) {
    Program program;
    program.environment = {"A=b c"};
    const Outcome outcome = run_shell("echo \"$A\"; echo err >&2; exit 7", program);
    EXPECT_EQ(outcome.output, "b c\nerr\n");
    EXPECT_EQ(outcome.end.exit_code, 7);
}

TEST(Launch, DropsAllPrivilege) {
    ASSERT_EQ(::geteuid(), 0U) << "this test gives up root, so it needs it: run it as root";
    Program program;
    program.identity = Identity{.uid = 64998, .gid = 64997};
    const std::string output =
        run_shell("id -u; id -g; id -G; grep -E 'NoNewPrivs|CapEff|CapPrm' /proc/self/status",
                  program)
            .output;
    EXPECT_EQ(output,
              "64998\n64997\n64997\nCapPrm:\t0000000000000000\nCapEff:"
              "\t0000000000000000\nNoNewPrivs:\t1\n");
}

TEST(Launch, TheProgramMayLieWhereItsUserCannotGo) {
    std::string directory = "/tmp/launch-closed-XXXXXX";
    ASSERT_NE(::mkdtemp(directory.data()), nullptr);  // for us alone
    std::filesystem::copy_file("/bin/true", directory + "/true");
    std::filesystem::copy_file("/bin/true", directory + "/forbidden");
    ASSERT_EQ(::chmod((directory + "/forbidden").c_str(), 0600), 0);
    Program program;
    program.identity = Identity{.uid = 64998, .gid = 64997};
    program.argv = {directory + "/true"};
    auto child = Child::launch(program);
    program.argv = {directory + "/forbidden"};
    const auto refused = Child::launch(program);
    std::filesystem::remove_all(directory);
    ASSERT_TRUE(child) << child.error().message;
    EXPECT_TRUE(wait_for_end(child->process(), 5000).value());
    EXPECT_EQ(child->end()->exit_code, 0);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::PermissionDenied);
}

TEST(Launch, ReadyIsDescriptorThree) {
    Pipe ready = make_pipe().value();
    Program program;
    program.ready = &ready.write;
    EXPECT_EQ(run_shell("echo 8000 >&3; ls /proc/self/fd | wc -l", program).end.exit_code, 0);
    ready.write.reset();
    EXPECT_EQ(read_all(ready.read, kOutputMax).value(), "8000\n");
}

TEST(Launch, AMissingProgramIsNamed) {
    Program program;
    program.argv = {"/no/such/program"};
    auto child = Child::launch(program);
    ASSERT_FALSE(child);
    EXPECT_EQ(child.error().kind, ErrorKind::NotFound);
    EXPECT_NE(child.error().message.find("/no/such/program"), std::string::npos);
}

Child launch_shell(const std::string& script) {
    Program program;
    program.argv = {"/bin/sh", "-c", script};
    return Child::launch(program).value();
}

TEST(Launch, StopsWithSigtermAndKillsAfterTheGrace) {
    Child polite = launch_shell("while :; do /bin/sleep 0.05; done");
    EXPECT_EQ(polite.end(), std::nullopt);
    EXPECT_EQ(polite.stop(5000).signal, SIGTERM);
    Pipe ready = make_pipe().value();
    Program program;
    program.argv = {"/bin/sh", "-c",
                    "trap '' TERM; echo up >&3; while :; do /bin/sleep 0.05; done"};
    program.ready = &ready.write;
    Child stubborn = Child::launch(program).value();
    char byte = 0;
    ASSERT_EQ(::read(ready.read.get(), &byte, 1), 1);
    const int64_t begin = steady_ms();
    EXPECT_EQ(stubborn.stop(100).signal, SIGKILL);
    EXPECT_GE(steady_ms() - begin, 99);
}

TEST(Launch, AChildDoesNotOutliveItsObject) {
    std::optional<ProcessMark> mark;
    {
        const Child child = launch_shell("exec /bin/sleep 60");
        mark = child.mark();
        EXPECT_TRUE(is_running(*mark));
    }
    EXPECT_FALSE(is_running(*mark));
    EXPECT_FALSE(open_process(*mark));
}

TEST(Launch, AChildIsKilledWithItsMaker) {
    Pipe marks = make_pipe().value();
    const pid_t maker = ::fork();
    ASSERT_GE(maker, 0);
    if (maker == 0) {
        const Child child = launch_shell("trap '' TERM; while :; do /bin/sleep 0.05; done");
        const ProcessMark mark = child.mark();
        (void)!::write(marks.write.get(), &mark, sizeof(mark));
        ::_exit(0);  // as if killed: nothing is tidied up
    }
    ProcessMark mark;
    ASSERT_EQ(::read(marks.read.get(), &mark, sizeof(mark)), static_cast<ssize_t>(sizeof(mark)));
    ::waitpid(maker, nullptr, 0);
    const int64_t give_up = steady_ms() + 5'000;
    while (is_running(mark) && steady_ms() < give_up)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_FALSE(is_running(mark));
}

TEST(Launch, AMarkTellsProcessesWithOneNumberApart) {
    ProcessMark mark = mark_of(::getpid()).value();
    EXPECT_TRUE(is_running(mark));
    EXPECT_TRUE(open_process(mark));
    ++mark.start_time;
    EXPECT_FALSE(is_running(mark));
    EXPECT_FALSE(open_process(mark));
}

TEST(Launch, FindsUsers) {
    EXPECT_EQ(find_identity("root")->uid, 0U);
    EXPECT_EQ(find_identity("64999")->gid, 64999U);
    EXPECT_EQ(find_identity("no-such-user").error().kind, ErrorKind::NotFound);
}

TEST(Launch, MakesDirectories) {
    const std::string root = "/tmp/cloister-launch-test";
    ASSERT_TRUE(make_directory(root + "/a/b", 0711, {.uid = ::geteuid(), .gid = ::getegid()}));
    struct stat status{};
    ASSERT_EQ(::stat((root + "/a/b").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0711U);
    std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace cloister::os
