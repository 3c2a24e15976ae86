// The driver as the agent sees it, with a real bash: it runs in a forked child with the scripts of
// the same build beside this test.
#include "programs/shell/driver.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "base/time.h"
#include "os/process_table.h"
#include "os/socket.h"

namespace cloister::shell {
namespace {

namespace fs = std::filesystem;

constexpr int kPatienceMs = 20'000;

std::string scripts() {
    const fs::path build = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
    return build / "runtime/kernels/bash";
}

// What a run sent and wrote.
struct Seen {
    json::object reply;
    std::vector<json::object> errors;
    std::string out, err;
    int64_t took_ms = 0;

    int64_t code() const { return reply.at("exit_code").as_int64(); }
    bool state_lost() const { return reply.at("state_lost").as_bool(); }
};

class ShellDriverTest : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(fs::exists(scripts() + "/loop.bash")) << "build the target `runtime` first";
        os::SocketPair sockets = os::make_socket_pair(os::SocketKind::Stream).value();
        os::Pipe out = os::make_pipe().value(), err = os::make_pipe().value();
        driver_ = ::fork();
        if (driver_ == 0) be_driver(sockets.theirs, out.write, err.write);
        for (const os::Fd* pipe : {&out.read, &err.read}) {
            ASSERT_TRUE(os::set_blocking(*pipe, os::Blocking::No));
        }
        out_ = std::move(out.read);
        err_ = std::move(err.read);
        sockets.theirs.reset();
        agent_.emplace(std::move(sockets.ours));
        ASSERT_EQ(receive().type, "kernel_info_reply");
    }

    void TearDown() override {
        if (driver_ <= 0) return;
        for (const pid_t pid : os::descendants_in(os::read_process_table(), driver_)) {
            ::kill(pid, SIGKILL);
        }
        ::kill(driver_, SIGKILL);
        ::waitpid(driver_, nullptr, 0);
    }

    [[noreturn]] static void be_driver(const os::Fd& agent, const os::Fd& out, const os::Fd& err) {
        ::setsid();
        for (const auto& [fd, number] : {std::pair{&out, 1}, {&err, 2}, {&agent, 3}}) {
            ::dup2(fd->get(), number);
        }
        ::close_range(4, ~0U, 0);
        auto driver = Driver::create(os::Fd(3), scripts());
        if (!driver) ::_exit(90);
        const auto end = (*driver)->serve();
        if (!end) ::_exit(91);
        ::_exit(*end ? 92 : 0);
    }

    Message receive() {
        pollfd readable{.fd = agent_->socket().get(), .events = POLLIN, .revents = 0};
        if (::poll(&readable, 1, kPatienceMs) <= 0)
            return {.type = "nothing", .content = {}, .fds = {}};
        auto message = agent_->receive();
        if (!message || !*message) return {.type = "closed", .content = {}, .fds = {}};
        return std::move(**message);
    }

    static std::string drained(const os::Fd& pipe) {
        std::string text;
        std::array<char, 4096> chunk;
        for (ssize_t got = 1; got > 0;) {
            got = ::read(pipe.get(), chunk.data(), chunk.size());
            if (got > 0) text.append(chunk.data(), static_cast<size_t>(got));
        }
        return text;
    }

    void begin(std::string_view code, json::object more = {}) {
        more["code"] = code;
        ASSERT_TRUE(agent_->send("execute_request", std::move(more)));
    }

    Seen finish() {
        Seen seen;
        const int64_t start = steady_ms();
        for (;;) {
            Message message = receive();
            seen.out += drained(out_);
            seen.err += drained(err_);
            if (message.type == "error") seen.errors.push_back(message.content);
            if (message.type == "status" || message.type == "error") continue;
            EXPECT_EQ(message.type, "execute_reply");
            seen.reply = std::move(message.content);
            if (message.type != "execute_reply") {
                seen.reply = {{"exit_code", -1}, {"state_lost", true}};
            }
            break;
        }
        seen.took_ms = steady_ms() - start;
        return seen;
    }

    Seen run(std::string_view code, json::object more = {}) {
        begin(code, std::move(more));
        return finish();
    }

    Seen interrupted(std::string_view code) {
        begin(code);
        EXPECT_EQ(receive().type, "status");
        while (drained(out_).empty()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        ::kill(-driver_, SIGINT);
        return finish();
    }

    pid_t driver_ = -1;
    os::Fd out_, err_;
    std::optional<Channel> agent_;
};

TEST_F(ShellDriverTest, KeepsTheShellsState) {
    run("x=1; f() { echo \"f $x\"; }; alias g='f'; cd /usr; set -- a b");
    const Seen seen = run("g; pwd; echo $#; (exit 7)");
    EXPECT_EQ(seen.out, "f 1\n/usr\n2\n");
    EXPECT_EQ(seen.code(), 7);
    EXPECT_EQ(seen.reply.at("status").as_string(), "error");
    EXPECT_EQ(seen.reply.at("cwd").as_string(), "/usr");
    EXPECT_EQ(seen.reply.at("execution_count").as_int64(), 2);
    EXPECT_EQ(run("echo $?").out, "7\n");
}

TEST_F(ShellDriverTest, OutlivesWhatEndsAShell) {
    run("x=kept; declare -A map=([a b]=1); f() { :; }; trap 'echo usr' USR1; alias ll='echo list'");
    const std::string pid = run("echo $$").out;
    for (const auto& [code, status] : {std::pair{"exit 3", 3},
                                       {"set -e\nfalse\necho no", 1},
                                       {"set +e -u; echo $none", 1},
                                       {"set +u; f() { local x=inner; exit 4; }; f", 4},
                                       {"kill $$", 143},
                                       {"exec no-such-program", 127}}) {
        const Seen seen = run(code);
        EXPECT_EQ(seen.code(), status) << code;
        EXPECT_FALSE(seen.state_lost()) << code;
    }
    EXPECT_EQ(run("echo $$").out, pid);
    EXPECT_EQ(run("echo $x ${map[a b]} $-; declare -F f; ll; kill -USR1 $$").out,
              "kept 1 hBs\nf\nlist\nusr\n");
}

TEST_F(ShellDriverTest, SaysWhenTheShellIsGone) {
    const Seen seen = run("exec sh -c 'echo instead; exit 9'");
    EXPECT_EQ(seen.out, "instead\n");
    EXPECT_EQ(seen.code(), 9);
    EXPECT_TRUE(seen.state_lost());
    int status = 0;
    ::waitpid(driver_, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 92);
    driver_ = -1;
}

TEST_F(ShellDriverTest, EndsWithAShellThatIsKilled) {
    begin("kill -9 $$");
    EXPECT_EQ(receive().type, "status");
    EXPECT_EQ(receive().type, "closed");
}

TEST_F(ShellDriverTest, EndsWithTheAgent) {
    agent_.reset();
    int status = 0;
    ::waitpid(driver_, &status, 0);
    EXPECT_EQ(status, 0);
    driver_ = -1;
}

TEST_F(ShellDriverTest, AnAgentThatGoesDuringARunIsMissedAtItsEnd) {
    begin("sleep 0.3");
    EXPECT_EQ(receive().type, "status");
    agent_.reset();
    rusage used{};
    int status = 0;
    ::wait4(driver_, &status, 0, &used);
    EXPECT_EQ(WEXITSTATUS(status), 91);
    EXPECT_LT(used.ru_utime.tv_sec * 1'000'000 + used.ru_utime.tv_usec, 200'000);
    driver_ = -1;
}

TEST_F(ShellDriverTest, HasTheVariablesOfARunForThatRun) {
    run("A=mine; export B=mine");
    const json::object env{{"A", "it's $(id) \"\n"}, {"B", "run"}, {"C", "run"}};
    EXPECT_EQ(run("printf %s \"$A$B$C\"; env | grep -c '^[BC]=run'; exit 1", {{"env", env}}).out,
              "it's $(id) \"\nrunrun2\n");
    EXPECT_EQ(run("echo $A $B ${C-none}; env | grep '^[ABC]='").out, "mine mine none\nB=mine\n");
    const Seen refused = run("echo no", {{"env", json::object{{"UID", "0"}}}});
    EXPECT_EQ(refused.code(), 1);
    EXPECT_EQ(refused.err, "bash: UID: readonly variable\n");
    EXPECT_EQ(refused.out, "");
}

TEST_F(ShellDriverTest, RunsAProgramBesideItsShell) {
    run("x=shell; export y=given");
    const Seen seen =
        run("echo \"$0\" \"$*\" ${x-none} $y; [[ $BASH_SOURCE == \"$0\" ]]; cd /; exit 5",
            {{"filename", "deep/prog.sh"}, {"argv", json::array{"prog.sh", "a b", "c"}}});
    EXPECT_EQ(seen.code(), 5);
    EXPECT_TRUE(seen.out.ends_with("/prog.sh a b c none given\n")) << seen.out;
    EXPECT_EQ(run("echo $# $x").out, "0 shell\n");
}

TEST_F(ShellDriverTest, NamesTheLineThatCannotBeParsed) {
    const Seen seen = run("echo before\nfi\n");
    EXPECT_EQ(seen.out, "before\n");
    ASSERT_EQ(seen.errors.size(), 1U);
    EXPECT_EQ(seen.errors[0].at("ename").as_string(), "SyntaxError");
    EXPECT_EQ(seen.errors[0].at("line").as_int64(), 2);
    EXPECT_TRUE(run("exit 2").errors.empty());
}

TEST_F(ShellDriverTest, RefusesWhatItCannotRun) {
    for (const auto& more :
         {json::object{{"cwd", "/no/such"}}, json::object{{"env", json::object{{"a-b", "1"}}}}}) {
        const Seen seen = run("echo no", more);
        EXPECT_EQ(seen.code(), 1);
        EXPECT_EQ(seen.out, "");
        ASSERT_EQ(seen.errors.size(), 1U);
        EXPECT_EQ(seen.errors[0].at("ename").as_string(), "InvalidRequest");
    }
}

TEST_F(ShellDriverTest, AnInterruptKeepsTheState) {
    constexpr const char* kInAFunction =
        "f() { local x=inner; while :; do sleep 0.01; done; }; echo go; if f; then :; fi; echo no";
    run("x=kept");
    for (const char* code : {"echo go; sleep 30", "echo go; while :; do :; done", kInAFunction,
                             "echo go; read -r y < <(sleep 30)", "echo go; sleep 30 || :",
                             // Between two commands: what comes next is killed.
                             "echo go; read -r < <(sleep 30) || :; sleep 30"}) {
        const Seen seen = interrupted(code);
        EXPECT_EQ(seen.code(), 130) << code;
        EXPECT_EQ(run("echo $x; [[ $- != *e* ]] || echo errexit").out, "kept\n") << code;
    }
}

TEST_F(ShellDriverTest, WhatIgnoresAnInterruptIsKilled) {
    run("x=kept; sleep 60 & y=$!");
    const Seen seen = interrupted("(trap '' INT; echo go; sleep 30; sleep 30); echo no");
    EXPECT_EQ(seen.code(), 130);
    EXPECT_LT(seen.took_ms, 10'000);
    EXPECT_EQ(run("kill -0 $y && echo $x").out, "kept\n");
}

TEST_F(ShellDriverTest, TakesTheLastWordsOfWhatARunLeavesBehind) {
    EXPECT_EQ(run("echo a > >(sleep 0.01; cat)").out, "a\n");
    EXPECT_EQ(run("exec > >(sed s/a/b/); echo a").out, "b\n");
    const Seen seen = run("sleep 60 & echo at once");
    EXPECT_EQ(seen.out, "at once\n");
    EXPECT_LT(seen.took_ms, 10'000);
}

TEST_F(ShellDriverTest, TheCodeCannotBreakTheProtocol) {
    // What a program prints, closes, or writes where answers go.
    EXPECT_EQ(
        run("echo 1 0; echo 1 0 >&2; exec 3>&- 4>&- 10>&- 11>&- 12>&- 1>&- 2>&-; exit 4").code(),
        4);
    EXPECT_EQ(run("printf '9 0\\n%0500d\\n2' 0 >\"/proc/$PPID/fd/5\"; exit 5").code(), 5);
    EXPECT_EQ(run("break; continue").code(), 0);
    EXPECT_EQ(run("continue 2").code(), 0);
    EXPECT_EQ(run("IFS=0123456789; set -C; printf() { :; }; read() { :; }; trap() { :; }").code(),
              0);
    EXPECT_EQ(run("exit 6").code(), 6);
    EXPECT_EQ(run("builtin unset -f printf read trap; IFS=' '; ls /proc/self/fd | wc -l").out,
              "4\n");
}

}  // namespace
}  // namespace cloister::shell
