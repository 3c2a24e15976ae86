#include "jail/spawn.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace cloister::jail {
namespace {

Spawn spawn_with(uint32_t have, uint32_t procs, size_t fds) {
    Spawn spawn;
    spawn.order.slot = 1;
    spawn.order.record.have = have;
    spawn.order.record.procs = procs;
    spawn.fds.resize(fds);
    return spawn;
}

TEST(SpawnOrder, CarriesADescriptorForEachThingItNames) {
    EXPECT_TRUE(well_formed(spawn_with(0, 0, kOrderFixed)));
    EXPECT_TRUE(well_formed(
        spawn_with(birth::kHaveMemoryPeak | birth::kHaveMemoryNow, 4, kOrderFixed + 2 + 8)));
    EXPECT_TRUE(
        well_formed(spawn_with((1u << birth::kHaveBits) - 1, os::kHierarchiesMax, kOrderFdsMax)));
}

TEST(SpawnOrder, IsRefusedWhenItPromisesMoreOrLess) {
    EXPECT_FALSE(well_formed(spawn_with(0, 0, kOrderFixed - 1)));
    EXPECT_FALSE(well_formed(spawn_with(0, 0, kOrderFixed + 1)));
    EXPECT_FALSE(well_formed(spawn_with(1, 1, kOrderFixed + 2)));
    EXPECT_FALSE(well_formed(spawn_with(1u << birth::kHaveBits, 0, kOrderFixed + 1)))
        << "a bit that nobody knows";
    EXPECT_FALSE(well_formed(
        spawn_with(0, os::kHierarchiesMax + 1, kOrderFixed + 2 * (os::kHierarchiesMax + 1))))
        << "more hierarchies than there can be";
}

TEST(SpawnOrder, IsRefusedForASlotThatNoNestHas) {
    Spawn spawn = spawn_with(0, 0, kOrderFixed);
    spawn.order.slot = limits::kNestSlots;
    EXPECT_FALSE(well_formed(spawn));
}

TEST(SpawnOrder, IsRefusedInAnotherVersion) {
    Spawn spawn = spawn_with(0, 0, kOrderFixed);
    ++spawn.order.record.version;
    EXPECT_FALSE(well_formed(spawn));
}

}  // namespace
}  // namespace cloister::jail
