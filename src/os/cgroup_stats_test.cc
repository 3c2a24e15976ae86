#include "os/cgroup_stats.h"

#include <gtest/gtest.h>

namespace cloister::os {
namespace {

TEST(CgroupStats, ReadsCpuTimeOfBothVersions) {
    EXPECT_EQ(parse_cpu_usec("1234567890\n", CgroupFormat::V1), 1'234'567u);
    EXPECT_EQ(
        parse_cpu_usec("usage_usec 4711\nuser_usec 4000\nsystem_usec 711\n", CgroupFormat::V2),
        4711u);
    EXPECT_EQ(parse_cpu_usec("user_usec 1\nusage_usec 9", CgroupFormat::V2), 9u);
}

TEST(CgroupStats, CountsOomKillsNotOtherKeysThatStartAlike) {
    EXPECT_EQ(parse_oom_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"), 3u);
    EXPECT_EQ(parse_oom_kills("low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\noom_group_kill 7\n"), 1u);
}

TEST(CgroupStats, CountsRefusedForks) {
    EXPECT_EQ(parse_pids_max_hits("max 17\n"), 17u);
    EXPECT_EQ(parse_pids_max_hits("max 0\n"), 0u);
}

TEST(CgroupStats, AddsUpThePageCache) {
    EXPECT_EQ(parse_reclaimable("anon 7\ninactive_file 100\nactive_file 20\ntotal_active_file 5\n"),
              120u);
    EXPECT_EQ(parse_reclaimable(""), 0u);
}

TEST(CgroupStats, ReadsOneNumberOrMax) {
    EXPECT_EQ(parse_bytes("9223372036854771712\n"), 9223372036854771712u);
    EXPECT_EQ(parse_bytes("max\n"), kUnlimited);
}

TEST(CgroupStats, AnswersZeroForTextsWithoutTheValue) {
    EXPECT_EQ(parse_cpu_usec("", CgroupFormat::V1), 0u);
    EXPECT_EQ(parse_cpu_usec("user_usec 5\n", CgroupFormat::V2), 0u);
    EXPECT_EQ(parse_oom_kills("oom_kill_disable 1\n"), 0u);
    EXPECT_EQ(parse_pids_max_hits("maximum 5\n"), 0u);
    EXPECT_EQ(parse_bytes("?"), 0u);
}

}  // namespace
}  // namespace cloister::os
