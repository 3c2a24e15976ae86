#include "faces/rest/conditions.h"

#include <gtest/gtest.h>

namespace cloister::rest {
namespace {

const Version kVersion{.etag = "abc", .modified_ms = 784'111'777'500};
constexpr const char* kThen = "Sun, 06 Nov 1994 08:49:37 GMT";
constexpr const char* kBefore = "Sun, 06 Nov 1994 08:49:36 GMT";

Verdict of(const char* name, const char* value) {
    return judge({{name, value}}, kVersion);
}

TEST(Conditions, AreJudged) {
    EXPECT_EQ(judge({}, kVersion), Verdict::Send);
    EXPECT_EQ(of("If-None-Match", "\"abc\""), Verdict::NotModified);
    EXPECT_EQ(of("If-None-Match", "\"x\", W/\"abc\""), Verdict::NotModified);
    EXPECT_EQ(of("If-None-Match", "*"), Verdict::NotModified);
    EXPECT_EQ(of("If-None-Match", "\"x\""), Verdict::Send);
    EXPECT_EQ(of("If-Match", "\"abc\""), Verdict::Send);
    EXPECT_EQ(of("If-Match", "W/\"abc\""), Verdict::Failed);
    EXPECT_EQ(of("If-Match", "\"x\""), Verdict::Failed);
    EXPECT_EQ(of("If-Modified-Since", kThen), Verdict::NotModified);
    EXPECT_EQ(of("If-Modified-Since", kBefore), Verdict::Send);
    EXPECT_EQ(of("If-Modified-Since", "yesterday"), Verdict::Send);
    EXPECT_EQ(of("If-Unmodified-Since", kThen), Verdict::Send);
    EXPECT_EQ(of("If-Unmodified-Since", kBefore), Verdict::Failed);
    // An etag is the better word.
    EXPECT_EQ(judge({{"If-None-Match", "\"x\""}, {"If-Modified-Since", kThen}}, kVersion),
              Verdict::Send);
}

TEST(Conditions, OfARange) {
    EXPECT_TRUE(range_holds({}, kVersion));
    EXPECT_TRUE(range_holds({{"If-Range", "\"abc\""}}, kVersion));
    EXPECT_FALSE(range_holds({{"If-Range", "\"x\""}}, kVersion));
    EXPECT_FALSE(range_holds({{"If-Range", "W/\"abc\""}}, kVersion));
    EXPECT_TRUE(range_holds({{"If-Range", kThen}}, kVersion));
    EXPECT_FALSE(range_holds({{"If-Range", kBefore}}, kVersion));
}

TEST(Conditions, DatesAreReadAndWritten) {
    EXPECT_EQ(http_date(kVersion.modified_ms), kThen);
    EXPECT_EQ(parse_http_date(kThen), 784'111'777'000);
    EXPECT_FALSE(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT "));
    EXPECT_EQ(first_etag("\"abc\", \"d\""), "abc");
    EXPECT_EQ(first_etag("*"), "*");
}

}  // namespace
}  // namespace cloister::rest
