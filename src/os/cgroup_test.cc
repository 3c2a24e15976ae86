#include "os/cgroup.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

namespace cloister::os {
namespace {

constexpr std::string_view kDebian12 =
    "24 30 0:22 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw\n"
    "28 24 0:25 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 "
    "rw,nsdelegate,memory_recursiveprot\n"
    "30 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,errors=remount-ro\n";

constexpr std::string_view kHybrid =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
    "33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
    "40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

constexpr std::string_view kV1 =
    "25 20 0:21 / /sys/fs/cgroup/cpu,cpuacct rw shared:10 master:3 - cgroup cgroup rw,cpu,cpuacct\n"
    "26 20 0:22 /docker/abc /mnt/a\\040b/memory rw shared:11 - cgroup cgroup rw,memory\n"
    "27 20 0:23 / /sys/fs/cgroup/pids rw shared:12 - cgroup cgroup rw,pids\n"
    "29 20 0:23 / /second/pids rw - cgroup cgroup rw,pids\n";

TEST(CgroupLayout, FindsEverythingInVersionTwo) {
    const CgroupLayout layout =
        cgroup_layout(kDebian12, "cpuset cpu io memory hugetlb pids rdma misc\n");
    EXPECT_EQ(layout.mode, CgroupMode::V2);
    ASSERT_EQ(layout.hierarchies.size(), 1u);
    EXPECT_EQ(layout.hierarchies[0].mount_point, "/sys/fs/cgroup");
    for (Controller c :
         {Controller::Memory, Controller::Pids, Controller::Cpu, Controller::Cpuacct}) {
        EXPECT_TRUE(layout.hierarchies[0].has(c));
    }
    EXPECT_EQ(v2_mount_point(kDebian12), "/sys/fs/cgroup");
}

TEST(CgroupLayout, TakesControllersOfVersionOneOnAHybridHost) {
    const CgroupLayout layout = cgroup_layout(kHybrid, "hugetlb\n");
    EXPECT_EQ(layout.mode, CgroupMode::Hybrid);
    ASSERT_EQ(layout.hierarchies.size(), 5u);
    for (const Hierarchy& hierarchy : layout.hierarchies) {
        const bool freezer = hierarchy.has(Controller::Freezer);
        EXPECT_EQ(hierarchy.format, freezer ? CgroupFormat::V2 : CgroupFormat::V1);
        EXPECT_EQ(hierarchy.controllers.size(), 1u) << hierarchy.mount_point;
    }
    EXPECT_EQ(layout.hierarchies.back().mount_point, "/sys/fs/cgroup/unified");
    EXPECT_EQ(v2_mount_point(kHybrid), "/sys/fs/cgroup/unified");
}

TEST(CgroupLayout, KnowsPureVersionOneWithSharedAndDoubleMounts) {
    const CgroupLayout layout = cgroup_layout(kV1, "");
    EXPECT_EQ(layout.mode, CgroupMode::V1);
    ASSERT_EQ(layout.hierarchies.size(), 3u);
    EXPECT_TRUE(layout.hierarchies[0].has(Controller::Cpu));
    EXPECT_TRUE(layout.hierarchies[0].has(Controller::Cpuacct));
    EXPECT_EQ(layout.hierarchies[1].mount_point, "/mnt/a b/memory");
    EXPECT_EQ(layout.hierarchies[2].mount_point, "/sys/fs/cgroup/pids");
    EXPECT_FALSE(v2_mount_point(kV1).has_value());
}

TEST(CgroupLayout, TakesTheFreezerOfVersionOneWhereThereIsNoOther) {
    const std::string freezer =
        "36 31 0:34 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n";
    const CgroupLayout v1 = cgroup_layout(std::string(kV1) + freezer, "");
    ASSERT_EQ(v1.hierarchies.size(), 4u);
    EXPECT_TRUE(v1.hierarchies[3].has(Controller::Freezer));
    EXPECT_EQ(v1.hierarchies[3].format, CgroupFormat::V1);
    const CgroupLayout hybrid = cgroup_layout(freezer + std::string(kHybrid), "");
    for (const Hierarchy& hierarchy : hybrid.hierarchies) {
        EXPECT_EQ(hierarchy.has(Controller::Freezer), hierarchy.format == CgroupFormat::V2);
    }
}

TEST(CgroupLayout, SaysNoneWhereThereIsNothing) {
    EXPECT_EQ(cgroup_layout("30 1 254:1 / / rw - ext4 /dev/vda1 rw\n", "").mode, CgroupMode::None);
    EXPECT_EQ(cgroup_layout("garbage\n - \nx - cgroup\n", "").mode, CgroupMode::None);
    EXPECT_EQ(cgroup_layout(kDebian12, "").mode, CgroupMode::None);
}

std::string value_of(const std::vector<GroupSetting>& settings, std::string_view file) {
    const auto found = std::ranges::find(settings, file, &GroupSetting::file);
    return found == settings.end() ? "(not set)" : found->value;
}

TEST(CgroupSettings, SpeakTheLanguageOfEachVersion) {
    const GroupLimits limits{.memory_max = (64 << 20) + 5, .pids_max = 7, .cpu = 2};
    const std::vector<Controller> all = {Controller::Memory, Controller::Pids, Controller::Cpu};
    const auto v1 =
        settings_of({.mount_point = "/", .format = CgroupFormat::V1, .controllers = all}, limits);
    EXPECT_EQ(value_of(v1, "memory.limit_in_bytes"), "67108864");
    EXPECT_EQ(value_of(v1, "memory.memsw.limit_in_bytes"), "67108864");
    EXPECT_EQ(value_of(v1, "pids.max"), "7");
    EXPECT_EQ(value_of(v1, "cpu.cfs_quota_us"), "200000");
    const auto v2 =
        settings_of({.mount_point = "/", .format = CgroupFormat::V2, .controllers = all}, limits);
    EXPECT_EQ(value_of(v2, "memory.max"), "67108864");
    EXPECT_EQ(value_of(v2, "memory.swap.max"), "0");
    EXPECT_EQ(value_of(v2, "memory.oom.group"), "1");
    EXPECT_EQ(value_of(v2, "cpu.max"), "200000 100000");
}

TEST(CgroupSettings, WeighCpuTimeAlikeInBothVersions) {
    const auto weight = [](CgroupFormat format, uint32_t shares) {
        const Hierarchy home{
            .mount_point = "/", .format = format, .controllers = {Controller::Cpu}};
        const auto settings = settings_of(home, {.cpu_shares = shares});
        return settings.size() == 1 ? settings[0].file + "=" + settings[0].value : "?";
    };
    EXPECT_EQ(weight(CgroupFormat::V1, 2), "cpu.shares=2");
    EXPECT_EQ(weight(CgroupFormat::V1, 16384), "cpu.shares=16384");
    EXPECT_EQ(weight(CgroupFormat::V2, 2), "cpu.weight=1");
    EXPECT_EQ(weight(CgroupFormat::V2, 1024), "cpu.weight=100");
    EXPECT_EQ(weight(CgroupFormat::V2, 16384), "cpu.weight=1600");
    for (const CgroupFormat format : {CgroupFormat::V1, CgroupFormat::V2}) {
        const Hierarchy home{
            .mount_point = "/", .format = format, .controllers = {Controller::Cpu}};
        EXPECT_EQ(value_of(settings_of(home, {.cpu_turn = CpuTurn::Last}), "cpu.idle"), "1");
        EXPECT_EQ(value_of(settings_of(home, {.cpu_turn = CpuTurn::Usual}), "cpu.idle"), "0");
    }
}

TEST(CgroupSettings, BoundTheDisk) {
    const GroupLimits limits{
        .disk = {.device = makedev(7, 3), .bytes_per_second = 1000, .iops = 50}};
    const auto v2 = settings_of(
        {.mount_point = "/", .format = CgroupFormat::V2, .controllers = {Controller::Io}}, limits);
    EXPECT_EQ(value_of(v2, "io.max"), "7:3 rbps=1000 wbps=1000 riops=50 wiops=50");
    const Hierarchy v1_home{
        .mount_point = "/", .format = CgroupFormat::V1, .controllers = {Controller::Io}};
    const auto v1 = settings_of(v1_home, limits);
    EXPECT_EQ(v1.size(), 4u);
    EXPECT_EQ(value_of(v1, "blkio.throttle.read_bps_device"), "7:3 1000");
    EXPECT_EQ(value_of(v1, "blkio.throttle.write_iops_device"), "7:3 50");
    EXPECT_EQ(settings_of(v1_home, {.disk = {.device = makedev(7, 3), .iops = 9}}).size(), 2u);
}

TEST(CgroupSettings, LeaveTheCpuAloneWithoutALimit) {
    const auto v2 = settings_of(
        {.mount_point = "/", .format = CgroupFormat::V2, .controllers = {Controller::Cpu}},
        {.memory_max = 0, .pids_max = 0, .cpu = 0});
    EXPECT_TRUE(v2.empty());
}

// A tree of version 2 as files: no kernel answers, so that what is written stays to be read.
class FakeV2Test : public testing::Test {
  protected:
    void SetUp() override {
        root_ = std::filesystem::temp_directory_path() / ("cgroup2-" + std::to_string(::getpid()));
        std::filesystem::create_directories(root_ / "our");
        put("cgroup.subtree_control", "");
        put("our/cgroup.subtree_control", "");
        const CgroupLayout layout{
            .mode = CgroupMode::V2,
            .hierarchies = {{.mount_point = root_,
                             .format = CgroupFormat::V2,
                             .controllers = {Controller::Memory, Controller::Pids, Controller::Cpu,
                                             Controller::Cpuacct, Controller::Io}}}};
        auto tree = CgroupTree::open(layout, "our");
        ASSERT_TRUE(tree) << tree.error().message;
        tree_ = std::make_unique<CgroupTree>(std::move(*tree));
        std::filesystem::create_directories(root_ / "our/box");
        for (const char* name : {"memory.max", "memory.swap.max", "memory.oom.group", "pids.max",
                                 "cpu.max", "cpu.weight", "io.max"}) {
            put(std::string("our/box/") + name, "");
        }
        put("our/box/memory.current", "104857600\n");
        put("our/box/memory.stat", "anon 62914560\nactive_file 20971520\ninactive_file 20971520\n");
        put("our/box/pids.current", "9\n");
    }
    void TearDown() override { std::filesystem::remove_all(root_); }
    void put(const std::string& name, std::string_view text) const {
        std::ofstream(root_ / name, std::ios::trunc) << text;
    }
    std::string get(const std::string& name) const { return *read_file(root_ / name, 4096); }

    std::filesystem::path root_;
    std::unique_ptr<CgroupTree> tree_;
};

TEST_F(FakeV2Test, PassesItsControllersOn) {
    EXPECT_EQ(get("our/cgroup.subtree_control"), "+memory +pids +cpu +io ");
}

TEST_F(FakeV2Test, WritesEveryLimit) {
    const auto set = tree_->limit("box", {.memory_max = 1 << 30,
                                          .pids_max = 64,
                                          .cpu = 2,
                                          .cpu_shares = 2048,
                                          .disk = {.device = makedev(7, 1), .iops = 10}});
    ASSERT_TRUE(set) << set.error().message;
    EXPECT_EQ(get("our/box/memory.max"), "1073741824");
    EXPECT_EQ(get("our/box/memory.oom.group"), "1");
    EXPECT_EQ(get("our/box/pids.max"), "64");
    EXPECT_EQ(get("our/box/cpu.max"), "200000 100000");
    EXPECT_EQ(get("our/box/cpu.weight"), "200");
    EXPECT_EQ(get("our/box/io.max"), "7:1 rbps=max wbps=max riops=10 wiops=10");
}

TEST_F(FakeV2Test, IsNotNarrowedBelowWhatItUsesButThePageCacheGivesWay) {
    EXPECT_EQ(tree_->narrow("box", {.memory_max = 50 << 20}).error().kind,
              ErrorKind::FailedPrecondition);
    EXPECT_EQ(tree_->narrow("box", {.pids_max = 8}).error().kind, ErrorKind::FailedPrecondition);
    EXPECT_EQ(get("our/box/memory.max"), "") << "nothing was written";
    const auto narrowed = tree_->narrow("box", {.memory_max = 70 << 20, .pids_max = 9});
    ASSERT_TRUE(narrowed) << narrowed.error().message;
    EXPECT_EQ(get("our/box/memory.max"), "73400320");
    EXPECT_EQ(get("our/box/pids.max"), "9");
}

// The rest needs root and a host with cgroups, as CI has them.
class CgroupTreeTest : public testing::Test {
  protected:
    void SetUp() override {
        auto layout = detect_cgroups();
        ASSERT_TRUE(layout) << layout.error().message;
        auto tree =
            CgroupTree::open(std::move(*layout), "cloister-test-" + std::to_string(::getpid()));
        ASSERT_TRUE(tree) << tree.error().message;
        tree_ = std::make_unique<CgroupTree>(std::move(*tree));
    }
    void TearDown() override {
        if (tree_) EXPECT_TRUE(tree_->remove(""));
    }
    std::unique_ptr<CgroupTree> tree_;
};

TEST_F(CgroupTreeTest, LimitsAreReadBackAndHold) {
    ASSERT_TRUE(tree_->create("box", GroupKind::Leaf));
    const auto limited = tree_->limit("box", {.memory_max = 64 << 20, .pids_max = 1, .cpu = 1});
    ASSERT_TRUE(limited) << limited.error().message;
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        // One process is the limit: a fork inside must fail.
        if (!tree_->move("box", ::getpid())) ::_exit(1);
        ::_exit(::fork() < 0 ? 42 : 2);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 42);
    const auto events = tree_->stat("box", GroupStat::PidsEvents);
    ASSERT_TRUE(events);
    EXPECT_EQ(parse_pids_max_hits(*read_all(*events, 4096)), 1u);
}

TEST_F(CgroupTreeTest, RemoveKillsWhatIsInside) {
    ASSERT_TRUE(tree_->create("nest", GroupKind::Inner));
    ASSERT_TRUE(tree_->create("nest/box", GroupKind::Leaf));
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        for (;;) ::pause();
    }
    ASSERT_TRUE(tree_->move("nest/box", child));
    EXPECT_EQ(tree_->groups(), std::vector<std::string>{"nest"});
    const auto removed = tree_->remove("nest");
    EXPECT_TRUE(removed) << removed.error().message;
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_TRUE(tree_->groups().empty());
    EXPECT_TRUE(tree_->remove("nest")) << "removing twice is a success";
}

// A process that adds one to a shared number all the time.
pid_t start_counter(volatile uint64_t* number) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    for (;;) *number = *number + 1;
}

void pause_ms(int64_t duration) {
    std::this_thread::sleep_for(std::chrono::milliseconds(duration));
}

void wait_until_frozen(const CgroupTree& tree, const std::string& path) {
    for (int tries = 0; tries < 1'000 && !tree.frozen(path); ++tries) pause_ms(1);
    EXPECT_TRUE(tree.frozen(path));
}

class FreezerTest : public CgroupTreeTest, public testing::WithParamInterface<CgroupFormat> {
  protected:
    // Both formats, where this host has them.
    void SetUp() override {
        auto layout = detect_cgroups();
        ASSERT_TRUE(layout) << layout.error().message;
        if (GetParam() == CgroupFormat::V1) {
            std::erase_if(layout->hierarchies, [](const Hierarchy& hierarchy) {
                return hierarchy.has(Controller::Freezer);
            });
            if (::access("/sys/fs/cgroup/freezer", F_OK) == 0) {
                layout->hierarchies.push_back({.mount_point = "/sys/fs/cgroup/freezer",
                                               .format = CgroupFormat::V1,
                                               .controllers = {Controller::Freezer}});
            }
        }
        auto tree =
            CgroupTree::open(std::move(*layout), "cloister-test-" + std::to_string(::getpid()));
        ASSERT_TRUE(tree) << tree.error().message;
        tree_ = std::make_unique<CgroupTree>(std::move(*tree));
    }
};

TEST_P(FreezerTest, StopsAndLetsGoOn) {
    ASSERT_TRUE(tree_->create("box", GroupKind::Leaf));
    if (!tree_->has(Controller::Freezer)) {
        EXPECT_EQ(tree_->freeze("box").error().kind, ErrorKind::Unimplemented);
        return;
    }
    auto* number = static_cast<uint64_t*>(
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    const pid_t child = start_counter(number);
    ASSERT_TRUE(tree_->move("box", child));
    ASSERT_TRUE(tree_->freeze("box"));
    wait_until_frozen(*tree_, "box");
    const uint64_t stopped_at = *static_cast<volatile uint64_t*>(number);
    pause_ms(20);
    EXPECT_EQ(*static_cast<volatile uint64_t*>(number), stopped_at);
    ASSERT_TRUE(tree_->thaw("box"));
    for (int tries = 0; tries < 1'000 && *static_cast<volatile uint64_t*>(number) == stopped_at;
         ++tries) {
        pause_ms(1);
    }
    EXPECT_GT(*static_cast<volatile uint64_t*>(number), stopped_at);
    ASSERT_TRUE(tree_->freeze("box"));
    wait_until_frozen(*tree_, "box");
    EXPECT_EQ(tree_->frozen_can_be_killed(), GetParam() == CgroupFormat::V2);
    EXPECT_TRUE(tree_->remove("box")) << "also what is frozen is killed";
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    ::munmap(number, 4096);
}

INSTANTIATE_TEST_SUITE_P(Formats, FreezerTest, testing::Values(CgroupFormat::V2, CgroupFormat::V1),
                         [](const auto& format) {
                             return format.param == CgroupFormat::V2 ? "V2" : "V1";
                         });

TEST_F(CgroupTreeTest, NarrowsAndPutsBack) {
    ASSERT_TRUE(tree_->create("box", GroupKind::Leaf));
    ASSERT_TRUE(tree_->limit("box", {.memory_max = 128 << 20, .pids_max = 64}));
    for (const uint64_t memory : {32u << 20, 128u << 20, 64u << 20, 128u << 20}) {
        const auto set = tree_->narrow("box", {.memory_max = memory, .pids_max = 8});
        EXPECT_TRUE(set) << memory << ": " << set.error().message;
    }
}

// On a host of version 2 there is nothing to watch, and nothing to see here.
TEST_F(CgroupTreeTest, TellsWhenTheMemoryLimitIsHit) {
    ASSERT_TRUE(tree_->create("box", GroupKind::Leaf));
    ASSERT_TRUE(tree_->limit("box", {.memory_max = 32 << 20}));
    const auto event = tree_->oom_event("box");
    if (tree_->format() == CgroupFormat::V2) {
        EXPECT_EQ(event.error().kind, ErrorKind::NotFound);
        return;
    }
    ASSERT_TRUE(event) << event.error().message;
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        if (!tree_->move("box", ::getpid())) ::_exit(1);
        constexpr size_t kBytes = 64 << 20;
        auto* memory = static_cast<volatile char*>(std::malloc(kBytes));
        for (size_t at = 0; at < kBytes; at += 4096) memory[at] = 1;
        ::_exit(2);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(WTERMSIG(status), SIGKILL);
    uint64_t count = 0;
    EXPECT_EQ(::read(event->get(), &count, sizeof(count)), ssize_t{sizeof(count)});
    const auto events = tree_->stat("box", GroupStat::MemoryEvents);
    EXPECT_EQ(parse_oom_kills(*read_all(*events, 4096)), 1u);
}

TEST_F(CgroupTreeTest, WeighsGroups) {
    ASSERT_TRUE(tree_->create("box", GroupKind::Leaf));
    for (const uint32_t shares : {2u, 16384u, 1024u}) {
        const auto set = tree_->limit("box", {.cpu_shares = shares});
        EXPECT_TRUE(set) << shares << ": " << set.error().message;
    }
    for (const CpuTurn turn : {CpuTurn::Last, CpuTurn::Usual}) {
        const auto set = tree_->limit("box", {.cpu_turn = turn});
        EXPECT_TRUE(set) << set.error().message;
    }
}

TEST(CgroupMoves, CanBeMadeQuick) {
    EXPECT_TRUE(favour_quick_moves());
}

}  // namespace
}  // namespace cloister::os
