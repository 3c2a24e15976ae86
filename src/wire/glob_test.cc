#include "wire/glob.h"

#include <gtest/gtest.h>

#include <string>

namespace cloister {
namespace {

struct Case {
    const char *pattern, *path;
    bool matches;
};

TEST(Glob, Matches) {
    for (const Case& one : {
             Case{"*.py", "a.py", true},
             Case{"*.py", "deep/below/a.py", true},
             Case{"*.py", "a.pyc", false},
             Case{"src/*.py", "src/a.py", true},
             Case{"src/*.py", "src/b/a.py", false},
             Case{"src/**/*.py", "src/a.py", true},
             Case{"src/**/*.py", "src/b/c/a.py", true},
             Case{"src/**/b/*.py", "src/x/b/y/b/a.py", true},
             Case{"**/x", "ax", false},
             Case{"**/x", "a/x", true},
             Case{"src/**", "src/a/b", true},
             Case{"src/**", "other/a", false},
             Case{"a?c", "abc", true},
             Case{"a?c", "ac", false},
             Case{"[a-c]x", "bx", true},
             Case{"[!a-c]x", "bx", false},
             Case{"[]]x", "]x", true},
             Case{"[ab", "[ab", true},
             Case{"\\*", "*", true},
             Case{"\\*", "x", false},
             Case{"*a*b*c", "xaxbxc", true},
             Case{"*a*b*c", "xaxbx", false},
             Case{"", "", true},
             Case{"*", "", true},
             Case{"x/[!a]y", "x//y", false},
         }) {
        EXPECT_EQ(matches_glob(one.pattern, one.path), one.matches)
            << one.pattern << " " << one.path;
    }
}

TEST(Glob, TakesNoTimeForAHostilePattern) {
    std::string pattern;
    for (int i = 0; i < 300; ++i) pattern += "*a";
    EXPECT_FALSE(matches_glob(pattern + "b", std::string(4'000, 'a')));
}

}  // namespace
}  // namespace cloister
