#include "programs/warden/journal.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace cloister::warden {
namespace {

const std::string kNest = "nest0000000000000000";
const std::string kOne = "one00000000000000000";
const std::string kTwo = "two00000000000000000";

TEST(Journal, KeepsWhatWasNotRemoved) {
    const auto left = parse_journal("+ " + kOne + " " + kNest + " 1\n+ " + kTwo + " " + kNest +
                                    " 2\n- " + kOne + "\n");
    ASSERT_EQ(left.size(), 1u);
    EXPECT_EQ(left.at(kTwo).nest, kNest);
    EXPECT_EQ(left.at(kTwo).slot, 2u);
}

TEST(Journal, ForgivesATornEndAndLinesOfOthers) {
    const std::string whole = "+ " + kOne + " " + kNest + " 1\n";
    EXPECT_EQ(parse_journal(whole + "- " + kOne).size(), 1u)
        << "a line without its end was not written";
    EXPECT_EQ(parse_journal(whole + "+ " + kTwo + " " + kNest + "\n").size(), 1u) << "no slot";
    EXPECT_EQ(parse_journal("+ ../../etc " + kNest + " 1\n\n\n? ?\n+ " + kTwo + " / 3\n").size(),
              0u);
    EXPECT_EQ(parse_journal("").size(), 0u);
}

TEST(Journal, IsThereAfterItIsOpenedAgain) {
    const std::string path = "/tmp/cloister-journal-" + std::to_string(::getpid());
    {
        auto journal = Journal::open(path);
        ASSERT_TRUE(journal) << journal.error().message;
        EXPECT_TRUE(journal->leftovers().empty());
        ASSERT_TRUE(journal->creating(kOne, {.nest = kNest, .slot = 7}));
        ASSERT_TRUE(journal->creating(kTwo, {.nest = kNest, .slot = 8}));
        ASSERT_TRUE(journal->removed(kTwo));
    }
    auto again = Journal::open(path);
    ASSERT_TRUE(again);
    ASSERT_EQ(again->leftovers().size(), 1u);
    EXPECT_EQ(again->leftovers().at(kOne).slot, 7u);
    ASSERT_TRUE(again->clear());
    EXPECT_TRUE(Journal::open(path)->leftovers().empty());
    ::unlink(path.c_str());
}

}  // namespace
}  // namespace cloister::warden
