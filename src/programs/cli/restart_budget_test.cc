#include "programs/cli/restart_budget.h"

#include <gtest/gtest.h>

namespace cloister::cli {
namespace {

TEST(RestartBudget, WaitsLongerEachTimeAndGivesUp) {
    RestartBudget budget;
    int64_t last = 0;
    for (int i = 0; i < 5; ++i) {
        const auto pause = budget.next(1000 + i);
        ASSERT_TRUE(pause) << i;
        EXPECT_GT(*pause, last);
        last = *pause;
    }
    EXPECT_EQ(budget.next(1010), std::nullopt);
    EXPECT_EQ(budget.next(60'999), std::nullopt);
    EXPECT_TRUE(budget.next(61'000));
}

TEST(RestartBudget, ForgetsWhatIsLongAgo) {
    RestartBudget budget;
    for (int64_t minute = 1; minute < 50; ++minute) EXPECT_EQ(budget.next(minute * 60'000), 50);
}

}  // namespace
}  // namespace cloister::cli
