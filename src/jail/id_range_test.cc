#include "jail/id_range.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace cloister::jail {
namespace {

TEST(IdRange, GivesABlockToOneOwnerAtATime) {
    auto first = IdRange::claim();
    const auto second = IdRange::claim();
    ASSERT_TRUE(first && second);
    EXPECT_NE(first->first(), second->first());
    EXPECT_GE(first->first(), limits::kHostIdFirst);
    EXPECT_EQ((second->first() - limits::kHostIdFirst) % (limits::kNestSlots * limits::kSlotIds),
              0u);
    const uint32_t released = first->first();
    first = make_error(ErrorKind::Cancelled, "");
    const auto third = IdRange::claim();
    ASSERT_TRUE(third);
    EXPECT_EQ(third->first(), released);
}

TEST(IdRange, OutlivesItsOwnerInACopyOfTheDescriptor) {
    auto owner = IdRange::claim();
    ASSERT_TRUE(owner);
    const uint32_t block = owner->first();
    const auto copy = owner->claim_fd().duplicate();
    ASSERT_TRUE(copy);
    owner = make_error(ErrorKind::Cancelled, "");
    const auto other = IdRange::claim();
    ASSERT_TRUE(other);
    EXPECT_NE(other->first(), block);
}

TEST(SubordinateIds, AreFineOutsideTheRange) {
    EXPECT_TRUE(check_subordinate_ids("", "f"));
    EXPECT_TRUE(check_subordinate_ids("alice:100000:65536\nbob:165536:65536\n", "f"));
    EXPECT_TRUE(check_subordinate_ids("alice:1879048191:1\n", "f"));
    EXPECT_TRUE(check_subordinate_ids("no numbers\na:b:c\nx:1\nalice:1879048192:0\n", "f"));
}

TEST(SubordinateIds, AreRefusedInsideItWithTheLineAndTheFile) {
    const auto refused =
        check_subordinate_ids("alice:100000:65536\neve:1879048192:1\n", "/etc/subuid");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::FailedPrecondition);
    EXPECT_NE(refused.error().message.find("eve:1879048192:1"), std::string::npos);
    EXPECT_NE(refused.error().message.find("/etc/subuid"), std::string::npos);
    EXPECT_FALSE(check_subordinate_ids("wide:100000:4000000000", "f"));
    EXPECT_FALSE(check_subordinate_ids("all:1:18446744073709551615", "f"));
}

}  // namespace
}  // namespace cloister::jail
