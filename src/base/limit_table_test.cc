#include "base/limit_table.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/limits.h"

namespace cloister {
namespace {

const std::filesystem::path kPage =
    std::filesystem::path(__FILE__).parent_path() / "../../contract/limits.md";

TEST(LimitTable, HasTheNumbersOfTheProgram) {
    for (const LimitRow& row : limit_table()) {
        if (row.name == "timeout_ms_default") EXPECT_EQ(row.value, 300'000u);
        if (row.name == "output_max_bytes") EXPECT_EQ(row.value, 256 * limits::kMiB);
        EXPECT_GT(row.value, 0u) << row.name;
        EXPECT_FALSE(row.words.empty() || row.beyond.empty()) << row.name;
    }
}

TEST(LimitTable, NamesNothingTwice) {
    std::set<std::string_view> names;
    for (const LimitRow& row : limit_table())
        EXPECT_TRUE(names.insert(row.name).second) << row.name;
}

// CLOISTER_WRITE_PAGES=1 writes the page anew.
TEST(LimitTable, IsThePageOfTheContract) {
    if (std::getenv("CLOISTER_WRITE_PAGES") != nullptr) std::ofstream(kPage) << limits_page();
    std::ifstream file(kPage);
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_EQ(text.str(), limits_page())
        << "run base_test with CLOISTER_WRITE_PAGES=1 and commit contract/limits.md";
}

TEST(LimitTable, SpeaksInUnits) {
    const std::string page = limits_page();
    EXPECT_NE(page.find("| `timeout_ms_default` | 300 s |"), std::string::npos);
    EXPECT_NE(page.find("| `timeout_ms_max` | 24 h |"), std::string::npos);
    EXPECT_NE(page.find("| `output_max_bytes` | 256 MiB |"), std::string::npos);
    EXPECT_NE(page.find("| `pids` | 512 |"), std::string::npos);
}

}  // namespace
}  // namespace cloister
