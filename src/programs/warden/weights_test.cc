#include "programs/warden/weights.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace cloister::warden {
namespace {

// Looks every kBusyLookMs at a sandbox that uses `part` (percent of one CPU) for `ms`.
class Sandbox {
  public:
    Sandbox() { meter_.look(now_, cpu_); }
    void use(int64_t ms, uint64_t percent) {
        for (int64_t passed = 0; passed < ms; passed += limits::kBusyLookMs) {
            now_ += limits::kBusyLookMs;
            cpu_ += static_cast<uint64_t>(limits::kBusyLookMs) * percent / 100;
            meter_.look(now_, cpu_);
        }
    }
    void pause(int64_t ms) { now_ += ms; }  // nobody looks
    const BusyMeter& meter() const { return meter_; }

  private:
    BusyMeter meter_;
    int64_t now_ = 1'000'000;
    uint64_t cpu_ = 77'000;  // used before the first look, which counts for nothing
};

TEST(Weights, AWholeCpuIsBusyAfterASecondAndRestsInASecond) {
    Sandbox box;
    EXPECT_FALSE(box.meter().busy());
    box.use(1'000, 100);
    EXPECT_FALSE(box.meter().busy()) << "1000 ms are not more than 1000 ms";
    box.use(500, 100);
    EXPECT_TRUE(box.meter().busy());
    box.use(500, 0);
    EXPECT_TRUE(box.meter().busy());
    box.use(500, 0);
    EXPECT_FALSE(box.meter().busy());
}

TEST(Weights, LittleUseNeverIsBusy) {
    Sandbox box;
    box.use(60'000, 49);
    EXPECT_FALSE(box.meter().busy());
    EXPECT_TRUE(box.meter().active());
    box.use(500, 2);
    EXPECT_FALSE(box.meter().active());
}

TEST(Weights, SeveralCpusAreBusySooner) {
    Sandbox box;
    box.use(500, 400);
    EXPECT_TRUE(box.meter().busy());
}

TEST(Weights, ShortRestsDoNotCount) {
    Sandbox box;
    box.use(3'000, 100);
    for (int i = 0; i < 5; ++i) {
        box.use(500, 0);
        box.use(500, 100);
        EXPECT_TRUE(box.meter().busy()) << i;
    }
    box.use(limits::kRestMs, 0);
    EXPECT_FALSE(box.meter().busy());
}

TEST(Weights, WhatWasUsedWhileNobodyLookedCountsForNothing) {
    Sandbox box;
    box.use(500, 10);
    box.pause(600'000);
    box.use(500, 100);
    EXPECT_FALSE(box.meter().busy());
}

TEST(Weights, ANestGivesWayWhenOnlyBusySandboxesAreActiveInIt) {
    Sandbox busy, calm, idle;
    busy.use(3'000, 100);
    calm.use(3'000, 30);
    idle.use(3'000, 0);
    NestBalance alone;
    alone.add(busy.meter());
    alone.add(idle.meter());
    EXPECT_TRUE(alone.gives_way());
    alone.add(calm.meter());
    EXPECT_FALSE(alone.gives_way());
    NestBalance quiet;
    quiet.add(idle.meter());
    EXPECT_FALSE(quiet.gives_way());
}

}  // namespace
}  // namespace cloister::warden
