#include "os/nested.h"

#include <gtest/gtest.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace cloister::os {
namespace {

// As a kernel 6.18 writes them.
constexpr std::string_view kStatus =
    "Name:\tcloister-agent\nTgid:\t4242\nNgid:\t0\nPid:\t4242\nNStgid:\t4242\t17\t1\n"
    "NSpid:\t4242\t17\t1\nNSpgid:\t4242\t17\t1\n";

TEST(Nested, ReadsWhatTheKernelTells) {
    EXPECT_EQ(namespace_pids(kStatus), (std::vector<pid_t>{4242, 17, 1}));
    EXPECT_TRUE(namespace_pids("Name:\tx\n").empty());
    EXPECT_EQ(outside_root("         0 1879056384       4096\n     65533 1879060480          3\n"),
              1879056384u);
    EXPECT_FALSE(outside_root("      1000 5000 1\n"));
    EXPECT_FALSE(outside_root(""));
}

class FirstProcess : public testing::Test {
  protected:
    void SetUp() override {
        child_ = static_cast<pid_t>(
            ::syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, nullptr, nullptr, nullptr, 0));
        ASSERT_GE(child_, 0);
        if (child_ == 0) {
            for (;;) ::pause();
        }
    }
    void TearDown() override { end(); }
    void end() {
        if (child_ <= 0) return;
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, 0);
        child_ = -1;
    }
    pid_t child_ = -1;
};

TEST_F(FirstProcess, IsFoundAmongOthers) {
    const auto found = find_first_process({::getpid(), child_}, 0);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->pid, child_);
    EXPECT_EQ(found->number_in_parent, child_);
    EXPECT_TRUE(found->pidfd.signal(0));
}

TEST_F(FirstProcess, IsNoneWithOtherIdsNoneThatIsOrdinaryAndNoneThatIsDead) {
    EXPECT_EQ(find_first_process({child_}, 1879056384).error().kind, ErrorKind::NotFound);
    EXPECT_FALSE(find_first_process({::getpid()}, 0));
    const pid_t gone = child_;
    end();
    EXPECT_FALSE(find_first_process({gone}, 0));
    EXPECT_FALSE(find_first_process({}, 0));
}

}  // namespace
}  // namespace cloister::os
