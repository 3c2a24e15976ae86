#include "engine/lifespan.h"

#include <gtest/gtest.h>

namespace cloister::engine {
namespace {

LifeFacts idle_for(int64_t idle_ms) {
    return {.span = {}, .now_ms = 1'000'000, .created_ms = 0, .idle_ms = idle_ms};
}

TEST(Lifespan, AnIdleSandboxIsPausedOneThatIsUsedIsNot) {
    LifeFacts facts = idle_for(limits::kSandboxIdleDefaultMs);
    const auto end = next_end(facts);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->limit, LifeLimit::Idle);
    EXPECT_EQ(end->action, AtEnd::Pause);
    EXPECT_EQ(end->in_ms, 0);
    facts.idle_ms.reset();
    EXPECT_FALSE(next_end(facts));
    facts.idle_ms = 1;
    facts.paused = true;
    EXPECT_FALSE(next_end(facts)) << "paused already";
}

TEST(Lifespan, WithoutALimitItIsPausedAfterAWhileAndNeverKilled) {
    LifeFacts facts = idle_for(kNeverExpiresIdleSeconds * 1000);
    facts.span.idle_seconds.reset();
    facts.span.on_idle = AtEnd::Kill;
    ASSERT_TRUE(next_end(facts));
    EXPECT_EQ(next_end(facts)->in_ms, 0);
    EXPECT_EQ(next_end(facts)->action, AtEnd::Pause);
}

TEST(Lifespan, TheEarliestEndCounts) {
    LifeFacts facts = idle_for(0);
    facts.span.deadline_ms = facts.now_ms + 5'000;
    EXPECT_EQ(next_end(facts)->limit, LifeLimit::Deadline);
    EXPECT_EQ(next_end(facts)->action, AtEnd::Kill);
    facts.max_life_ms = facts.now_ms + 4'000;
    EXPECT_EQ(next_end(facts)->limit, LifeLimit::MaxLife);
    facts.span.deadline_ms = facts.now_ms - 1;
    EXPECT_EQ(next_end(facts)->limit, LifeLimit::Deadline);
    EXPECT_LT(next_end(facts)->in_ms, 0) << "one that has passed is due";
    facts.paused = true;
    EXPECT_EQ(next_end(facts)->limit, LifeLimit::MaxLife) << "a deadline does not run meanwhile";
}

TEST(Lifespan, WarnsBeforeTheEndNotBeforeAnIdlePause) {
    LifeFacts facts = idle_for(limits::kSandboxIdleDefaultMs - kEndWarningMs);
    EXPECT_FALSE(next_end(facts)->warn);
    facts.span.on_idle = AtEnd::Kill;
    EXPECT_TRUE(next_end(facts)->warn);
    facts.idle_ms = *facts.idle_ms - 1;
    EXPECT_FALSE(next_end(facts)->warn);
    facts.span.idle_seconds = 2;  // a short one: half of it
    facts.idle_ms = 900;
    EXPECT_FALSE(next_end(facts)->warn);
    facts.idle_ms = 1'000;
    EXPECT_TRUE(next_end(facts)->warn);
}

}  // namespace
}  // namespace cloister::engine
