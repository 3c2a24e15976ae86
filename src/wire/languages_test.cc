#include "wire/languages.h"

#include <gtest/gtest.h>

namespace cloister {
namespace {

TEST(Languages, AreKnownByTheirNames) {
    EXPECT_TRUE(is_language("javascript"));
    EXPECT_FALSE(is_language("JavaScript"));
    EXPECT_FALSE(is_language(""));
    EXPECT_TRUE(language_names().starts_with("`python`, `javascript`, `typescript`"));
}

TEST(Languages, AreKnownByTheirFiles) {
    EXPECT_EQ(find_language_of("a.py"), "python");
    EXPECT_EQ(find_language_of("dir.ts/a.mjs"), "javascript");
    EXPECT_EQ(find_language_of("a.test.cts"), "typescript");
    EXPECT_EQ(find_language_of("./set up.sh"), "bash");
    EXPECT_EQ(find_language_of("plot.R"), "r");
    EXPECT_EQ(find_language_of("Main.java"), "java");
    EXPECT_FALSE(find_language_of("a.txt"));
    EXPECT_FALSE(find_language_of("js"));
    EXPECT_FALSE(find_language_of(""));
}

TEST(Languages, AnyJupyterKernelIsOne) {
    EXPECT_EQ(find_kernelspec("jupyter:xeus-lua_5.4"), "xeus-lua_5.4");
    for (const std::string& word :
         {std::string("jupyter:"), std::string("jupyter:a/b"), std::string("jupyter:a b"),
          std::string("Jupyter:a"), std::string("r"), "jupyter:" + std::string(100, 'a')}) {
        EXPECT_FALSE(find_kernelspec(word)) << word;
    }
}

}  // namespace
}  // namespace cloister
