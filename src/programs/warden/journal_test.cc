#include "programs/warden/journal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/limits.h"

namespace cloister::warden {
namespace {

const std::string kNest = "nest0000000000000000";
const std::string kOne = "one00000000000000000";
const std::string kTwo = "two00000000000000000";
const std::string kNestLine = "nest " + kNest +
                              " project0000000000000 base0000000000000000 runtime0000000000000 "
                              "1879048192\n";

NestEntry nest_entry() {
    return {.project = *Id::from("project0000000000000"),
            .template_revision = *Id::from("base0000000000000000"),
            .runtime = "runtime0000000000000",
            .first_id = 1879048192};
}

JailPlan plan_of(const std::string& sandbox) {
    return {.sandbox = *Id::from(sandbox),
            .project = nest_entry().project,
            .template_revision = nest_entry().template_revision,
            .cpu = 2,
            .memory_max = 3,
            .disk_max = 4,
            .disk_bytes_per_second = 5,
            .disk_iops = 6,
            .pids_max = 7,
            .root_allowed = 1};
}

std::string making(const std::string& sandbox) {
    return "making " + kNest + " " + sandbox + " 9 2 3 4 5 6 7 1\n";
}

TEST(Journal, KeepsWhatIsNotGone) {
    const Book left = parse_journal(kNestLine + making(kOne) + making(kTwo) + "running " + kTwo +
                                    "\ngone " + kOne + "\n");
    ASSERT_EQ(left.nests.size(), 1u);
    EXPECT_EQ(left.nests.at(kNest).first_id, 1879048192u);
    ASSERT_EQ(left.sandboxes.size(), 1u);
    const SandboxEntry& two = left.sandboxes.at(kTwo);
    EXPECT_EQ(two.nest, kNest);
    EXPECT_EQ(two.slot, 9u);
    EXPECT_EQ(two.progress, Progress::Running);
    const JailPlan wanted = plan_of(kTwo);
    EXPECT_EQ(0, std::memcmp(&two.plan, &wanted, sizeof(wanted))) << "the whole plan";
}

TEST(Journal, KnowsHowFarEachLifeHasCome) {
    const auto progress = [](const std::string& more) {
        return parse_journal(kNestLine + making(kOne) + more).sandboxes.at(kOne).progress;
    };
    EXPECT_EQ(progress(""), Progress::Making);
    EXPECT_EQ(progress("running " + kOne + "\n"), Progress::Running);
    EXPECT_EQ(progress("running " + kOne + "\nending " + kOne + "\n"), Progress::Ending);
}

TEST(Journal, ForgivesATornEndAndLinesOfOthers) {
    EXPECT_EQ(parse_journal(kNestLine + making(kOne) + "gone " + kOne).sandboxes.size(), 1u)
        << "a line without its end was not written";
    for (const std::string& wrong :
         {"making " + kNest + " " + kTwo + " 9 2 3 4 5 6 7\n",       // a plan without its end
          "making " + kNest + " " + kTwo + " 1024 2 3 4 5 6 7 1\n",  // a slot that no nest has
          "making other000000000000000 " + kTwo + " 9 2 3 4 5 6 7 1\n",
          "making " + kNest + " ../../etc 9 2 3 4 5 6 7 1\n", "running " + kTwo + "\n",
          std::string("\n\n? ?\n"), "+ " + kTwo + " " + kNest + " 1\n"}) {
        EXPECT_TRUE(parse_journal(kNestLine + wrong).sandboxes.empty()) << wrong;
    }
    EXPECT_TRUE(parse_journal("nest " + kNest + " / base0000000000000000 x 1\n").nests.empty());
    EXPECT_TRUE(parse_journal("").nests.empty());
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
        EXPECT_TRUE(journal->book().sandboxes.empty());
        ASSERT_TRUE(journal->making_nest(kNest, nest_entry()));
        ASSERT_TRUE(journal->making(kNest, 7, plan_of(kOne)));
        ASSERT_TRUE(journal->making(kNest, 8, plan_of(kTwo)));
        ASSERT_TRUE(journal->running(kOne));
        ASSERT_TRUE(journal->ending(kTwo));
        ASSERT_TRUE(journal->gone(kTwo));
    }
    for (int times = 0; times < 2; ++times) {  // the second time from what opening wrote anew
        auto again = Journal::open(path_);
        ASSERT_TRUE(again);
        ASSERT_EQ(again->book().sandboxes.size(), 1u);
        EXPECT_EQ(again->book().sandboxes.at(kOne).slot, 7u);
        EXPECT_EQ(again->book().sandboxes.at(kOne).progress, Progress::Running);
        EXPECT_EQ(again->book().nests.at(kNest).runtime, nest_entry().runtime);
    }
    auto journal = Journal::open(path_);
    ASSERT_TRUE(journal && journal->nest_gone(kNest));
    EXPECT_TRUE(Journal::open(path_)->book().nests.empty());
}

TEST_F(JournalFile, GoesOnAfterATornLine) {
    std::ofstream(path_) << kNestLine << making(kOne) << "gone " << kOne;
    auto journal = Journal::open(path_);
    ASSERT_TRUE(journal && journal->making(kNest, 2, plan_of(kTwo)));
    EXPECT_EQ(Journal::open(path_)->book().sandboxes.size(), 2u);
}

TEST_F(JournalFile, StaysShortHoweverMuchComesAndGoes) {
    auto journal = Journal::open(path_);
    ASSERT_TRUE(journal && journal->making_nest(kNest, nest_entry()));
    ASSERT_TRUE(journal->making(kNest, 1, plan_of(kOne)) && journal->running(kOne));
    for (size_t bytes = 0; bytes < 2 * limits::kJournalBytesMax; bytes += 90) {
        ASSERT_TRUE(journal->making(kNest, 2, plan_of(kTwo)));
        ASSERT_TRUE(journal->gone(kTwo));
    }
    EXPECT_LE(std::filesystem::file_size(path_), limits::kJournalBytesMax);
    const auto again = Journal::open(path_);
    ASSERT_EQ(again->book().sandboxes.size(), 1u);
    EXPECT_EQ(again->book().sandboxes.at(kOne).progress, Progress::Running);
}

}  // namespace
}  // namespace cloister::warden
