#include "wire/run_end.h"

#include <gtest/gtest.h>

namespace cloister {
namespace {

TEST(RunEnd, EveryReasonHasAWordOfItsOwn) {
    for (int i = 0; i <= static_cast<int>(EndReason::Ok); ++i) {
        const auto reason = static_cast<EndReason>(i);
        EXPECT_EQ(end_reason_from(to_string(reason)), reason);
    }
    EXPECT_EQ(end_reason_from("fine"), std::nullopt);
}

TEST(RunEnd, TellsWhatIsWorthAnotherTry) {
    for (int i = 0; i <= static_cast<int>(EndReason::Ok); ++i) {
        const auto reason = static_cast<EndReason>(i);
        const bool again = reason == EndReason::SandboxLost || reason == EndReason::Cancelled;
        EXPECT_EQ(is_retryable(reason), again) << to_string(reason);
    }
}

TEST(RunEnd, ReasonsStandInTheOrderOfPrecedence) {
    EXPECT_LT(EndReason::SandboxLost, EndReason::Oom);
    EXPECT_LT(EndReason::Oom, EndReason::Timeout);
    EXPECT_LT(EndReason::Timeout, EndReason::OutputLimit);
    EXPECT_LT(EndReason::DiskFull, EndReason::Error);
    EXPECT_LT(EndReason::Error, EndReason::Ok);
}

}  // namespace
}  // namespace cloister
