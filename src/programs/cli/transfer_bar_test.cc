#include "programs/cli/transfer_bar.h"

#include <gtest/gtest.h>

namespace cloister::cli {
namespace {

TEST(TransferBar, SaysHowFarItIs) {
    EXPECT_EQ(bar_text("a", 50'000'000, 100'000'000, 1'000),
              "a  50 MB of 100 MB  [############            ]  50 MB/s");
    EXPECT_EQ(bar_text("a\033", 3, std::nullopt, 0), "a?  3 B  3.0 KB/s");
}

}  // namespace
}  // namespace cloister::cli
