#include "programs/shell/syntax.h"

#include <gtest/gtest.h>

#include "programs/shell/bash.h"

namespace cloister::shell {
namespace {

std::optional<SyntaxError> look_at(std::string_view code) {
    return find_syntax_error(find_bash().value(), code);
}

TEST(SyntaxError, IsFoundInWhatBashWrites) {
    const auto error = syntax_error_in(
        "bash: line 3: syntax error near unexpected token `fi'\nbash: line 3: `  fi'\n");
    ASSERT_TRUE(error);
    EXPECT_EQ(error->line, 3);
    EXPECT_EQ(error->message, "syntax error near unexpected token `fi'");
}

TEST(SyntaxError, IsNotAWarning) {
    EXPECT_FALSE(
        syntax_error_in("bash: line 2: warning: here-document at line 1 delimited by "
                        "end-of-file (wanted `X')\n"));
}

TEST(SyntaxError, IsNotFoundInOtherWords) {
    for (const char* words : {"", "\n\n", "bash: line", "bash: line x: y", "line 4", "line 4:no"}) {
        EXPECT_FALSE(syntax_error_in(words)) << words;
    }
}

TEST(SyntaxError, NamesTheLineOfTheCode) {
    EXPECT_EQ(look_at("echo a\nif true; then\nfi\n")->line, 3);
    EXPECT_EQ(look_at("echo 'a")->line, 1);
    EXPECT_EQ(look_at("case x in\n")->message, "syntax error: unexpected end of file");
}

TEST(SyntaxError, IsNotSeenInGoodCode) {
    for (const char* code : {"", "exit 2", "cat <<X\nno end", "shopt -s extglob\nls !(a)",
                             "echo \"line 1: syntax error\" >&2"}) {
        EXPECT_FALSE(look_at(code)) << code;
    }
}

TEST(SyntaxError, NothingIsExecuted) {
    EXPECT_FALSE(look_at("kill -9 $PPID; kill -9 $$"));
}

}  // namespace
}  // namespace cloister::shell
