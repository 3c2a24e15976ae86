#include "os/page_out.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <vector>

namespace cloister::os {
namespace {

TEST(PageOut, KnowsWhetherThereIsSwap) {
    EXPECT_TRUE(swap_in("MemTotal: 1 kB\nSwapTotal:       2097148 kB\nSwapFree: 0 kB\n"));
    EXPECT_FALSE(swap_in("MemTotal: 1 kB\nSwapTotal:             0 kB\nSwapFree: 7 kB\n"));
    EXPECT_FALSE(swap_in("MemTotal: 1 kB\n"));
    EXPECT_FALSE(swap_in(""));
}

// With or without swap the kernel takes the advice, and nothing is lost by it.
TEST(PageOut, AsksForTheMemoryOfAStoppedProcess) {
    constexpr size_t kBytes = 8 << 20;
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        const std::vector<char> memory(kBytes, 'x');
        ::raise(SIGSTOP);
        size_t good = 0;
        for (const char c : memory) good += c == 'x' ? 1 : 0;
        ::_exit(good == kBytes ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
    const auto asked = page_out(child);
    ASSERT_TRUE(asked) << asked.error().message;
    EXPECT_GE(*asked, kBytes);
    ::kill(child, SIGCONT);
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT_FALSE(page_out(child)) << "it is gone";
}

}  // namespace
}  // namespace cloister::os
