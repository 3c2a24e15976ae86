#include "programs/cli/log_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/limits.h"

namespace cloister::cli {
namespace {

const std::string kPath = "/tmp/cloister-log-file-test";

TEST(LogFile, ShowsWholeLinesSinceAPlace) {
    ASSERT_TRUE(os::write_file_atomically(kPath, "first line\nsecond line\nthird line\n", 0600));
    EXPECT_EQ(log_since(kPath, 11, 1000), "second line\nthird line\n");
    EXPECT_EQ(log_since(kPath, 0, 15), "third line\n");
    EXPECT_EQ(log_since(kPath, log_size(kPath), 1000), "");
    EXPECT_EQ(log_since(kPath, 1000, 1000), "");
    std::filesystem::remove(kPath);
    EXPECT_EQ(log_size(kPath), 0U);
    EXPECT_EQ(log_since(kPath, 0, 10), "");
}

// In a process of its own, since it takes over standard error.
void write_more_than_one_file() {
    auto log = LogFile::open(kPath);
    for (int i = 0; i < 18; ++i) log->append(std::string(limits::kMiB, 'x'));
    log->append("\nthe newest line\n");
    const bool is_set_aside = log_size(kPath + ".1") > 16 * limits::kMiB;
    const bool goes_on = log_since(kPath, 0, 100).ends_with("the newest line\n");
    std::_Exit(is_set_aside && goes_on && log_size(kPath) < 4 * limits::kMiB ? 0 : 1);
}

TEST(LogFileDeathTest, SetsALargeFileAside) {
    EXPECT_EXIT(write_more_than_one_file(), ::testing::ExitedWithCode(0), "");
    std::filesystem::remove(kPath);
    std::filesystem::remove(kPath + ".1");
}

}  // namespace
}  // namespace cloister::cli
