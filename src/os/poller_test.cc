#include "os/poller.h"

#include <gtest/gtest.h>

namespace cloister::os {
namespace {

TEST(Poller, CallsOnlyWhatIsReadable) {
    auto quiet = make_pipe(), busy = make_pipe();
    ASSERT_TRUE(quiet && busy);
    int quiet_calls = 0, busy_calls = 0;
    Poller poller;
    poller.watch(quiet->read, [&] { ++quiet_calls; });
    poller.watch(busy->read, [&] { ++busy_calls; });
    ASSERT_TRUE(write_all(busy->write, "x"));
    ASSERT_TRUE(poller.wait(1000));
    EXPECT_EQ(quiet_calls, 0);
    EXPECT_EQ(busy_calls, 1);
}

TEST(Poller, CallsForAClosedOtherEnd) {
    auto pipe = make_pipe();
    ASSERT_TRUE(pipe);
    int calls = 0;
    Poller poller;
    poller.watch(pipe->read, [&] { ++calls; });
    pipe->write.reset();
    ASSERT_TRUE(poller.wait(1000));
    EXPECT_EQ(calls, 1);
}

TEST(Poller, LeavesOutWhatAnEarlierCallUnwatchedOrReplaced) {
    auto first = make_pipe(), second = make_pipe();
    ASSERT_TRUE(first && second);
    int stale = 0, fresh = 0;
    Poller poller;
    ASSERT_LT(first->read.get(), second->read.get());
    poller.watch(first->read, [&] {
        poller.unwatch(first->read);
        poller.watch(second->read, [&] { ++fresh; });
    });
    poller.watch(second->read, [&] { ++stale; });
    ASSERT_TRUE(write_all(first->write, "x"));
    ASSERT_TRUE(write_all(second->write, "x"));
    ASSERT_TRUE(poller.wait(1000));
    EXPECT_EQ(stale + fresh, 0);
    ASSERT_TRUE(poller.wait(1000));
    EXPECT_EQ(stale, 0);
    EXPECT_EQ(fresh, 1);
}

TEST(Poller, CallsForWhatADescriptorIsWatchedForOnly) {
    auto pipe = make_pipe();
    ASSERT_TRUE(pipe);
    int calls = 0;
    Poller poller;
    poller.watch(pipe->write, [&] { ++calls; }, Interest::None);
    ASSERT_TRUE(poller.wait(1));
    EXPECT_EQ(calls, 0);
    poller.set_interest(pipe->write, Interest::Write);
    ASSERT_TRUE(poller.wait(1000));
    EXPECT_EQ(calls, 1);
    pipe->read.reset();  // an error, which poll reports unasked
    poller.set_interest(pipe->write, Interest::None);
    ASSERT_TRUE(poller.wait(1));
    EXPECT_EQ(calls, 1);
}

TEST(Poller, ReturnsWhenTheTimeIsOver) {
    Poller poller;
    EXPECT_TRUE(poller.wait(1));
}

}  // namespace
}  // namespace cloister::os
