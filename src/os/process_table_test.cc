#include "os/process_table.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>

#include "os/fd.h"

namespace cloister::os {
namespace {

TEST(ProcessTable, ReadsALineOfTheKernel) {
    // The name holds what could be taken for the fields behind it.
    const ProcessFacts facts = process_facts_in(
        "321 (a) S 9 (b) R 77 300 290 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 123456 99 88\n");
    EXPECT_EQ(facts.parent, 77);
    EXPECT_EQ(facts.session, 290);
    EXPECT_EQ(facts.started_ticks, 123456U);
}

TEST(ProcessTable, HoldsNothingOfNonsense) {
    for (const char* text : {"", "1 2 3", "1 (x", "1 (x)", "1 (x) S y"}) {
        EXPECT_EQ(process_facts_in(text).started_ticks, 0U) << text;
    }
}

TEST(ProcessTable, KnowsAFamily) {
    const BirthMark before = mark_births();
    Pipe ready = make_pipe().value();
    const pid_t child = ::fork();
    if (child == 0) {
        const pid_t grandchild = ::fork();
        if (grandchild != 0) (void)write_all(ready.write, std::to_string(grandchild) + " ");
        ::pause();
        ::_exit(0);
    }
    ready.write.reset();
    std::array<char, 32> text{};
    ASSERT_GT(::read(ready.read.get(), text.data(), text.size() - 1), 0);
    const pid_t grandchild = static_cast<pid_t>(std::strtol(text.data(), nullptr, 10));

    const ProcessTable table = read_process_table();
    EXPECT_EQ(descendants_in(table, ::getpid()), (std::vector<pid_t>{child, grandchild}));
    EXPECT_EQ(descendants_in(table, child), std::vector<pid_t>{grandchild});
    EXPECT_TRUE(descendants_in(table, grandchild).empty());
    EXPECT_EQ(table.at(child).session, ::getsid(0));
    const BirthMark after = mark_births();
    for (const pid_t pid : {child, grandchild}) {
        EXPECT_TRUE(before.is_before(pid, table.at(pid)));
        EXPECT_FALSE(after.is_before(pid, table.at(pid)));
    }

    ::kill(grandchild, SIGKILL);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace cloister::os
