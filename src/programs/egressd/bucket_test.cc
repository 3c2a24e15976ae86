#include "programs/egressd/bucket.h"

#include <gtest/gtest.h>

namespace cloister::egressd {
namespace {

TEST(Bucket, GivesABurstAndThenWhatComesIn) {
    Bucket bucket(10, 3);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(bucket.try_take(1, 1'000));
    EXPECT_FALSE(bucket.try_take(1, 1'000));
    EXPECT_FALSE(bucket.try_take(1, 1'099));
    EXPECT_TRUE(bucket.try_take(1, 1'200));
    EXPECT_TRUE(bucket.try_take(3, 1'000'000)) << "it holds no more than the burst";
    EXPECT_FALSE(bucket.try_take(1, 1'000'000));
}

TEST(Bucket, SaysHowLongADebtLasts) {
    Bucket bucket(1'000, 500);
    EXPECT_EQ(bucket.take(400, 1), 0);
    EXPECT_EQ(bucket.take(600, 1), 501);
    EXPECT_EQ(bucket.take(0, 600), 0);
}

}  // namespace
}  // namespace cloister::egressd
