#include "wire/capabilities.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace cloister {
namespace {

constexpr uint32_t kAll = 63;

KernelFacts good_kernel() {
    return {.release = "6.1.0",
            .new_enough = true,
            .user_namespaces = 100,
            .seccomp = true,
            .landlock = 2,
            .cpu_pressure = true};
}

const Check& named(const std::vector<Check>& checks, std::string_view name) {
    const auto found = std::ranges::find(checks, name, &Check::name);
    EXPECT_NE(found, checks.end()) << name;
    return *found;
}

TEST(Capabilities, AWholeHostEnforcesEverything) {
    const HostFacts host{.cgroups = warden::CgroupMode::V2,
                         .enforced = kAll,
                         .oom_kill = warden::OomKill::Kernel,
                         .quick_moves = true};
    for (const auto& checks : {check_isolation(good_kernel()), check_limits(host, good_kernel())}) {
        for (const Check& check : checks) {
            EXPECT_EQ(check.state, InForce::Enforced) << check.name;
            EXPECT_EQ(check.way_out, "") << check.name;
            EXPECT_NE(check.detail, "") << check.name;
        }
    }
}

TEST(Capabilities, WhatIsMissingHasAReasonAndAWayOut) {
    for (const auto& checks : {check_isolation({}), check_limits({}, {})}) {
        for (const Check& check : checks) {
            EXPECT_EQ(check.state, InForce::Unsupported) << check.name;
            EXPECT_GT(check.detail.size(), 10u) << check.name;
            EXPECT_GT(check.way_out.size(), 10u) << check.name;
        }
    }
}

TEST(Capabilities, VersionOneSaysWhatItsDiskLimitDoesNotCount) {
    const HostFacts host{.cgroups = warden::CgroupMode::Hybrid, .enforced = kAll};
    const auto checks = check_limits(host, good_kernel());
    EXPECT_EQ(named(checks, "disk_throughput").state, InForce::Enforced);
    EXPECT_NE(named(checks, "disk_throughput").detail.find("direct I/O only"), std::string::npos);
}

TEST(Capabilities, StrongerTiersAreAbsentAndSaySo) {
    const auto tiers = check_tiers();
    EXPECT_EQ(named(tiers, "namespace").state, InForce::Enforced);
    EXPECT_EQ(named(tiers, "gvisor").state, InForce::Unsupported);
    EXPECT_EQ(named(tiers, "microvm").state, InForce::Unsupported);
}

TEST(Capabilities, WhatIsRequiredMustBeThere) {
    const HostFacts host{.enforced = kAll & ~static_cast<uint32_t>(warden::Limit::Pids)};
    EXPECT_TRUE(check_required({}, {}));
    EXPECT_TRUE(check_required({"memory", "disk"}, host));
    const auto refused = check_required({"memory", "pids"}, host);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::FailedPrecondition);
    EXPECT_NE(refused.error().message.find("`pids`"), std::string::npos);
}

TEST(Capabilities, EveryLimitThatIsListedCanBeRequired) {
    const HostFacts whole{
        .enforced = kAll, .oom_kill = warden::OomKill::Watcher, .quick_moves = true};
    EXPECT_EQ(limit_names().size(), check_limits(whole, {}).size());
    for (const std::string& name : limit_names()) {
        EXPECT_TRUE(check_required({name}, whole)) << name;
        const auto refused = check_required({name}, {});
        ASSERT_FALSE(refused) << name;
        EXPECT_NE(refused.error().message.find("`" + name + "`"), std::string::npos);
    }
}

}  // namespace
}  // namespace cloister
