#include "base/failpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace cloister {
namespace {

// In a process group of its own, which is what a failpoint ends.
void pass(const char* wanted, std::string_view place) {
    ::setpgid(0, 0);
    ::setenv("CLOISTER_FAILPOINT", wanted, 1);
    failpoint(place);
    ::_exit(0);
}

TEST(FailpointDeathTest, KillsAtItsPlaceOnly) {
    EXPECT_EXIT(pass("warden:one", "warden:one"), testing::KilledBySignal(SIGKILL), "");
    EXPECT_EXIT(pass("warden:one", "warden:other"), testing::ExitedWithCode(0), "");
    EXPECT_EXIT(pass("", "warden:one"), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace cloister
