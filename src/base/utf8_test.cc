#include "base/utf8.h"

#include <gtest/gtest.h>

namespace cloister {
namespace {

TEST(Utf8, AcceptsWellFormedText) {
    EXPECT_TRUE(is_utf8(""));
    EXPECT_TRUE(is_utf8("plain"));
    EXPECT_TRUE(is_utf8("grüße 漢字 😀"));
}

TEST(Utf8, RejectsIllFormedText) {
    EXPECT_FALSE(is_utf8("\x80"));
    EXPECT_FALSE(is_utf8("\xC0\x80"));          // overlong
    EXPECT_FALSE(is_utf8("\xED\xA0\x80"));      // surrogate
    EXPECT_FALSE(is_utf8("\xF4\x90\x80\x80"));  // above U+10FFFF
    EXPECT_FALSE(is_utf8("\xE6\xBC"));          // cut
}

TEST(Utf8, ReplacesOnlyWhatIsIllFormed) {
    EXPECT_EQ(to_utf8("a\xFFz"), "a\xEF\xBF\xBDz");
    EXPECT_EQ(to_utf8("\xE6\xBC"), "\xEF\xBF\xBD");
    EXPECT_EQ(to_utf8("ü"), "ü");
}

TEST(Utf8, FindsTheCharacterThatIsCut) {
    EXPECT_EQ(incomplete_tail("ab"), 0U);
    EXPECT_EQ(incomplete_tail("a\xC3"), 1U);
    EXPECT_EQ(incomplete_tail("a\xE6\xBC"), 2U);
    EXPECT_EQ(incomplete_tail("a\xF0\x9F\x98"), 3U);
    EXPECT_EQ(incomplete_tail("a\xF0\x9F\x98\x80"), 0U);
    EXPECT_EQ(incomplete_tail("\x80\x80"), 0U);
}

}  // namespace
}  // namespace cloister
