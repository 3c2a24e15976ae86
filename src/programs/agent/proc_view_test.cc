#include "programs/agent/proc_view.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "base/limits.h"
#include "base/time.h"

namespace cloister::agent {
namespace {

using limits::kMiB;

// Recorded on a host with cgroup v1, shortened.
constexpr std::string_view kStatV1 =
    "cache 20971520\nrss 104857600\nrss_huge 0\nshmem 1048576\nmapped_file 4194304\n"
    "dirty 8192\nwriteback 0\npgpgin 9\ninactive_anon 1048576\nactive_anon 103809024\n"
    "inactive_file 12582912\nactive_file 7340032\nunevictable 0\n"
    "hierarchical_memory_limit 2147483648\ntotal_cache 99999999\n";
// And on one with v2.
constexpr std::string_view kStatV2 =
    "anon 104857600\nfile 20971520\nkernel 3145728\nkernel_stack 65536\npagetables 131072\n"
    "shmem 1048576\nfile_mapped 4194304\nfile_dirty 8192\nfile_writeback 0\n"
    "inactive_anon 1048576\nactive_anon 103809024\ninactive_file 12582912\n"
    "active_file 7340032\nunevictable 0\nslab_reclaimable 524288\nslab_unreclaimable 262144\n";

// The number of a line of meminfo, as psutil and free read it.
int64_t kilobytes(const std::string& text, const std::string& name) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string key, unit;
        int64_t number = -1;
        words >> key >> number >> unit;
        if (key == name + ":") return unit == "kB" ? number : -2;
    }
    return -1;
}

TEST(Meminfo, TellsTheSandboxsOwnMemory) {
    for (const auto& [stat, format] :
         {std::pair{kStatV1, os::CgroupFormat::V1}, std::pair{kStatV2, os::CgroupFormat::V2}}) {
        const std::string text = meminfo_text(memory_facts(2048 * kMiB, 128 * kMiB, stat, format));
        EXPECT_EQ(kilobytes(text, "MemTotal"), 2048 * 1024);
        EXPECT_EQ(kilobytes(text, "MemFree"), 1920 * 1024);
        EXPECT_EQ(kilobytes(text, "Cached"), 20 * 1024);
        EXPECT_EQ(kilobytes(text, "Active(file)"), 7 * 1024);
        EXPECT_EQ(kilobytes(text, "AnonPages"), 100 * 1024);
        EXPECT_EQ(kilobytes(text, "Shmem"), 1024);
        EXPECT_EQ(kilobytes(text, "SwapTotal"), 0);
        EXPECT_EQ(kilobytes(text, "Dirty"), 8);
    }
    const MemoryFacts v2 = memory_facts(2048 * kMiB, 128 * kMiB, kStatV2, os::CgroupFormat::V2);
    EXPECT_EQ(kilobytes(meminfo_text(v2), "MemAvailable"), (1920 + 12 + 7) * 1024 + 512);
    EXPECT_EQ(kilobytes(meminfo_text(v2), "Slab"), 768);
}

TEST(Meminfo, NeverTellsMoreThanThereIs) {
    const auto text =
        meminfo_text(memory_facts(100 * kMiB, 101 * kMiB, kStatV1, os::CgroupFormat::V1));
    EXPECT_EQ(kilobytes(text, "MemFree"), 0) << "the counter may overshoot the limit";
    const auto empty = meminfo_text(memory_facts(100 * kMiB, 0, "", os::CgroupFormat::V2));
    EXPECT_EQ(kilobytes(empty, "MemAvailable"), 100 * 1024);
}

TEST(Meminfo, IsAlwaysAsLong) {
    const auto small = meminfo_text(memory_facts(1, 0, "", os::CgroupFormat::V1));
    const auto large =
        meminfo_text(memory_facts(limits::kSandboxMemoryMax, kMiB, kStatV2, os::CgroupFormat::V2));
    EXPECT_EQ(small.size(), large.size());
}

constexpr std::string_view kCpuinfo =
    "processor\t: 3\nmodel name\t: A Fast One @ 2.0GHz\nphysical id\t: 1\nsiblings\t: 64\n"
    "core id\t\t: 17\ncpu cores\t: 32\napicid\t\t: 9\nflags\t\t: fpu vme\npower management:\n\n"
    "processor\t: 4\nmodel name\t: A Fast One @ 2.0GHz\nphysical id\t: 1\nsiblings\t: 64\n"
    "core id\t\t: 18\ncpu cores\t: 32\napicid\t\t: 10\nflags\t\t: fpu vme\npower management:\n\n"
    "processor\t: 5\nmodel na";

TEST(Cpuinfo, CountsTheFirstProcessorsAnew) {
    EXPECT_EQ(cpuinfo_text(kCpuinfo, 1),
              "processor\t: 0\nmodel name\t: A Fast One @ 2.0GHz\nphysical id\t: 0\n"
              "siblings\t: 1\ncore id\t\t: 0\ncpu cores\t: 1\napicid\t\t: 0\n"
              "flags\t\t: fpu vme\npower management:\n\n");
    const std::string two = cpuinfo_text(kCpuinfo, 2);
    EXPECT_NE(two.find("processor\t: 1\n"), std::string::npos);
    EXPECT_NE(two.find("core id\t\t: 1\n"), std::string::npos);
    EXPECT_EQ(cpuinfo_text(kCpuinfo, 9).find("processor\t: 5"), std::string::npos)
        << "a block that was cut off is none";
    EXPECT_EQ(cpuinfo_text("", 2), "");
}

TEST(Stat, HasALineForEachCpuAndTheirSum) {
    const std::string text = stat_text(
        {.cpus = 2, .user_usec = 4'000'000, .system_usec = 1'000'000, .idle_usec = 20'000'000},
        {.total = 5, .last_pid = 42, .running = 2}, 1'700'000'000);
    EXPECT_EQ(text,
              "cpu  400 0 100 2000 0 0 0 0 0 0\n"
              "cpu0 200 0 50 1000 0 0 0 0 0 0\n"
              "cpu1 200 0 50 1000 0 0 0 0 0 0\n"
              "intr 0\nctxt 0\nbtime 1700000000\nprocesses 42\nprocs_running 2\n"
              "procs_blocked 0\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n");
}

TEST(Uptime, IsInHundredths) {
    EXPECT_EQ(uptime_text(12'345'678, 5'000), "12.34 0.00\n");
    EXPECT_EQ(uptime_text(0, 61'050'000), "0.00 61.05\n");
}

TEST(Load, NearsTheCpusInUse) {
    LoadAverage load;
    load.add(2, 60);
    EXPECT_NEAR(load.values()[0], 2 * (1 - std::exp(-1)), 0.001);
    EXPECT_GT(load.values()[0], load.values()[1]);
    for (int i = 0; i < 3600; ++i) load.add(2, 1);
    for (const double value : load.values()) EXPECT_NEAR(value, 2, 0.05);
    load.add(0, 86'400);
    EXPECT_EQ(loadavg_text(load.values(), {.total = 3, .last_pid = 9, .running = 1}),
              "0.00 0.00 0.00 1/3 9\n");
}

TEST(Padding, KeepsTheLastNewlineLast) {
    EXPECT_EQ(padded("0.1 3\n", 8), "0.1 3  \n");
    EXPECT_EQ(padded("0.1 3\n", 2), "0.1 3\n");
}

class ProcViewTest : public testing::Test {
  protected:
    void SetUp() override {
        for (os::Fd& file : birth_.proc_view) file = file_with("");
        std::ifstream host("/proc/cpuinfo");
        std::stringstream text;
        text << host.rdbuf();
        write(birth_.proc_view[birth::kCpuinfo], text.str());
        birth_.record.memory_max = 256 * kMiB;
        birth_.memory_now = file_with("1048576\n");
        birth_.memory_stat = file_with(kStatV1);
        birth_.cpu_usage = file_with("1000000000\n");
    }

    static os::Fd file_with(std::string_view text) {
        os::Fd file(::memfd_create("test", MFD_CLOEXEC));
        write(file, text);
        return file;
    }
    static void write(const os::Fd& file, std::string_view text) {
        ASSERT_EQ(::ftruncate(file.get(), 0), 0);
        ASSERT_EQ(::pwrite(file.get(), text.data(), text.size(), 0),
                  static_cast<ssize_t>(text.size()));
    }
    std::string shown(birth::ProcFile file) const {
        std::string text(64 * limits::kKiB, '\0');
        const ssize_t got =
            ::pread(birth_.proc_view[static_cast<size_t>(file)].get(), text.data(), text.size(), 0);
        text.resize(static_cast<size_t>(got));
        return text;
    }

    Birth birth_;
};

TEST_F(ProcViewTest, FillsItsFilesAtBirthAndKeepsThemUpToDate) {
    ProcView view(birth_);
    ASSERT_TRUE(view.open());
    EXPECT_EQ(kilobytes(shown(birth::kMeminfo), "MemFree"), 255 * 1024);
    cpu_set_t allowed;
    ASSERT_EQ(::sched_getaffinity(0, sizeof(allowed), &allowed), 0);
    const std::string cpuinfo = shown(birth::kCpuinfo);
    EXPECT_NE(cpuinfo.find(fmt::format("processor\t: {}", CPU_COUNT(&allowed) - 1)),
              std::string::npos);
    EXPECT_EQ(cpuinfo.find(fmt::format("processor\t: {}\n", CPU_COUNT(&allowed))),
              std::string::npos);

    write(birth_.memory_now, "2097152\n");
    view.refresh_if_due(view.due_ms() - 1);
    EXPECT_EQ(kilobytes(shown(birth::kMeminfo), "MemFree"), 255 * 1024) << "not due yet";
    view.refresh_if_due(view.due_ms());
    EXPECT_EQ(kilobytes(shown(birth::kMeminfo), "MemFree"), 254 * 1024);
    EXPECT_GT(view.due_ms(), steady_ms());
}

TEST_F(ProcViewTest, NeverShrinksAFile) {
    ProcView view(birth_);
    ASSERT_TRUE(view.open());
    write(birth_.cpu_usage, "900000000000\n");  // a load of hundreds of CPUs, and then none
    view.refresh_if_due(view.due_ms());
    const size_t size = shown(birth::kLoadavg).size();
    view.refresh_if_due(view.due_ms() + 10'000'000);
    EXPECT_EQ(shown(birth::kLoadavg).size(), size);
    EXPECT_EQ(shown(birth::kLoadavg).substr(0, 5), "0.00 ");
    EXPECT_EQ(shown(birth::kLoadavg).back(), '\n');
}

TEST(ProcViewOfATest, WithoutFilesDoesNothing) {
    const Birth birth;
    ProcView view(birth);
    EXPECT_TRUE(view.open());
    EXPECT_GT(view.due_ms(), steady_ms());
}

}  // namespace
}  // namespace cloister::agent
