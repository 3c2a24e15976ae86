#include "programs/warden/journal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/limits.h"

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

class JournalFile : public testing::Test {
  protected:
    void TearDown() override { std::filesystem::remove(path_); }
    std::string path_ = "/tmp/cloister-journal-" + std::to_string(::getpid());
};

TEST_F(JournalFile, IsThereAfterItIsOpenedAgain) {
    {
        auto journal = Journal::open(path_);
        ASSERT_TRUE(journal) << journal.error().message;
        EXPECT_TRUE(journal->entries().empty());
        ASSERT_TRUE(journal->creating(kOne, {.nest = kNest, .slot = 7}));
        ASSERT_TRUE(journal->creating(kTwo, {.nest = kNest, .slot = 8}));
        ASSERT_TRUE(journal->removed(kTwo));
    }
    const auto again = Journal::open(path_);
    ASSERT_TRUE(again);
    ASSERT_EQ(again->entries().size(), 1u);
    EXPECT_EQ(again->entries().at(kOne).slot, 7u);
}

TEST_F(JournalFile, GoesOnAfterATornLine) {
    std::ofstream(path_) << "+ " << kOne << " " << kNest << " 1\n- " << kOne;
    auto journal = Journal::open(path_);
    ASSERT_TRUE(journal && journal->creating(kTwo, {.nest = kNest, .slot = 2}));
    EXPECT_EQ(Journal::open(path_)->entries().size(), 2u);
}

TEST_F(JournalFile, StaysShortHoweverMuchComesAndGoes) {
    auto journal = Journal::open(path_);
    ASSERT_TRUE(journal && journal->creating(kOne, {.nest = kNest, .slot = 1}));
    for (size_t bytes = 0; bytes < 2 * limits::kJournalBytesMax; bytes += 70) {
        ASSERT_TRUE(journal->creating(kTwo, {.nest = kNest, .slot = 2}));
        ASSERT_TRUE(journal->removed(kTwo));
    }
    EXPECT_LE(std::filesystem::file_size(path_), limits::kJournalBytesMax);
    const auto again = Journal::open(path_);
    ASSERT_EQ(again->entries().size(), 1u);
    EXPECT_TRUE(again->entries().contains(kOne));
}

}  // namespace
}  // namespace cloister::warden
