#include "programs/cli/network_hint.h"

#include <gtest/gtest.h>

namespace cloister::cli {
namespace {

TEST(NetworkHint, IsWantedWhenAPhraseComes) {
    NetworkHint hint;
    hint.take("OSError: [Errno 101] Network is unre");
    EXPECT_FALSE(hint.wanted());
    hint.take("achable\n");
    EXPECT_TRUE(hint.wanted());
}

TEST(NetworkHint, IsNotWantedForOtherErrors) {
    NetworkHint hint;
    for (int i = 0; i < 100; ++i) hint.take("ValueError: the network is fine, thank you\n");
    EXPECT_FALSE(hint.wanted());
}

}  // namespace
}  // namespace cloister::cli
