#include "base/log.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/time.h"

namespace cloister {
namespace {

TEST(Log, QuotesAnythingIntoValidJson) {
    EXPECT_EQ(json_quote("plain"), "\"plain\"");
    EXPECT_EQ(json_quote("a\"b\\c\n\t\r"), R"("a\"b\\c\n\t\r")");
    EXPECT_EQ(json_quote(std::string("\x01\x00", 2)), R"("\u0001\u0000")");
    EXPECT_EQ(json_quote("\xFF"), "\"\xEF\xBF\xBD\"");
}

TEST(Log, WritesOneObjectALineFromTheLevelOn) {
    log_open("test", LogLevel::Info);
    testing::internal::CaptureStderr();
    log_debug("not shown");
    log_info("shown", {{"sandbox_id", "x\"y"}});
    const std::string text = testing::internal::GetCapturedStderr();
    EXPECT_EQ(text.find("not shown"), std::string::npos);
    EXPECT_NE(text.find(R"("program":"test","message":"shown","sandbox_id":"x\"y"})"),
              std::string::npos);
    EXPECT_EQ(std::ranges::count(text, '\n'), 1);
}

TEST(Log, KnowsItsLevels) {
    EXPECT_EQ(log_level_from("warn"), LogLevel::Warn);
    EXPECT_EQ(log_level_from("loud"), std::nullopt);
}

TEST(Time, FormatsAsRfc3339InUtc) {
    EXPECT_EQ(rfc3339(0), "1970-01-01T00:00:00.000Z");
    EXPECT_EQ(rfc3339(1764444010123), "2025-11-29T19:20:10.123Z");
}

}  // namespace
}  // namespace cloister
