#include "jail/cpu_choice.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace cloister::jail {
namespace {

cpu_set_t set_of(std::initializer_list<size_t> cpus) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const size_t cpu : cpus) CPU_SET(cpu, &set);
    return set;
}

std::vector<size_t> chosen(const cpu_set_t& allowed, uint32_t count, uint32_t slot) {
    const cpu_set_t set = choose_cpus(allowed, count, slot);
    std::vector<size_t> cpus;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    }
    return cpus;
}

using Cpus = std::vector<size_t>;

TEST(CpuChoice, SpreadsSlotsOverTheHost) {
    const cpu_set_t host = set_of({0, 1, 2, 3, 4, 5, 6, 7});
    EXPECT_EQ(chosen(host, 2, 0), Cpus({0, 1}));
    EXPECT_EQ(chosen(host, 2, 1), Cpus({2, 3}));
    EXPECT_EQ(chosen(host, 2, 4), Cpus({0, 1}));
    EXPECT_EQ(chosen(host, 3, 2), Cpus({0, 6, 7})) << "around the end";
}

TEST(CpuChoice, KeepsToWhatIsAllowed) {
    const cpu_set_t some = set_of({1, 5, 9});
    EXPECT_EQ(chosen(some, 1, 0), Cpus({1}));
    EXPECT_EQ(chosen(some, 1, 1), Cpus({5}));
    EXPECT_EQ(chosen(some, 2, 1), Cpus({1, 9}));
    EXPECT_EQ(chosen(some, 64, 1023), Cpus({1, 5, 9})) << "at most what the host has";
}

}  // namespace
}  // namespace cloister::jail
