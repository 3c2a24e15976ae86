#include "engine/run_spec_json.h"

#include <gtest/gtest.h>

namespace cloister::engine {
namespace {

TEST(RunSpecJson, EveryFieldComesBack) {
    RunSpec spec{.language = "bash", .code = "print('ü\n')"};
    spec.filename = "a.py";
    spec.argv = {"a.py", "-x"};
    spec.env = {{"K", "V"}};
    spec.cwd = "/tmp";
    spec.stdin_mode = StdinMode::Text;
    spec.stdin_text = std::string("\0\xFF text", 7);
    spec.files = {{.path = "a", .bytes = std::string("\xFE\0", 2)}, {.path = "b", .bytes = ""}};
    spec.timeout_ms = 7;
    spec.output_max = 9;
    spec.cpu_time_ms = 11;
    spec.narrowed = {.memory_max = 13, .pids_max = 15};
    spec.network = egress::PolicySpec{.mode = egress::Mode::Filtered, .deny_out = {"a.b"}};
    const auto back = spec_from(spec_text(spec));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->language, spec.language);
    EXPECT_EQ(back->code, spec.code);
    EXPECT_EQ(back->filename, spec.filename);
    EXPECT_EQ(back->argv, spec.argv);
    EXPECT_EQ(back->env, spec.env);
    EXPECT_EQ(back->cwd, spec.cwd);
    EXPECT_EQ(back->stdin_mode, spec.stdin_mode);
    EXPECT_EQ(back->stdin_text, spec.stdin_text);
    ASSERT_EQ(back->files.size(), 2U);
    EXPECT_EQ(back->files[0].path, "a");
    EXPECT_EQ(back->files[0].bytes, spec.files[0].bytes);
    EXPECT_EQ(back->timeout_ms, 7);
    EXPECT_EQ(back->output_max, 9U);
    EXPECT_EQ(back->cpu_time_ms, 11);
    EXPECT_EQ(back->narrowed.memory_max, 13U);
    EXPECT_EQ(back->narrowed.pids_max, 15U);
    EXPECT_EQ(back->network, spec.network);
}

TEST(RunSpecJson, ASmallOneStaysSmall) {
    const std::string text = spec_text(RunSpec{.code = "1+1"});
    EXPECT_LT(text.size(), 120U);
    EXPECT_EQ(spec_from(text)->code, "1+1");
    EXPECT_EQ(spec_from(text)->filename, std::nullopt);
}

TEST(RunSpecJson, WhatIsNoSpecIsRefused) {
    for (const char* text : {"", "{}", "[1]", R"({"language":"python","code":"1"})",
                             R"({"language":"python","code":"1","stdin":"none","strange":1})",
                             R"({"language":"python","code":"1","stdin":"text","stdin_text":"?"})",
                             R"({"language":"python","code":"1","stdin":"none","files":[7]})"}) {
        EXPECT_FALSE(spec_from(text)) << text;
    }
}

}  // namespace
}  // namespace cloister::engine
