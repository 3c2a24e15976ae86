#include "programs/cli/arguments.h"

#include <gtest/gtest.h>

namespace cloister::cli {
namespace {

using Words = std::vector<std::string>;

TEST(Arguments, ReadDurations) {
    EXPECT_EQ(parse_duration_ms("2").value(), 2000);
    EXPECT_EQ(parse_duration_ms("1.5").value(), 1500);
    EXPECT_EQ(parse_duration_ms("500ms").value(), 500);
    EXPECT_EQ(parse_duration_ms("5m").value(), 300'000);
    EXPECT_EQ(parse_duration_ms("24h").value(), 86'400'000);
    for (const char* wrong : {"", "soon", "0", "-1", "25h", "1x", "1 s", "inf", "nan", "0.0001"}) {
        EXPECT_FALSE(parse_duration_ms(wrong)) << wrong;
    }
}

TEST(Arguments, ReadMemory) {
    EXPECT_EQ(parse_megabytes("512").value(), 512);
    EXPECT_EQ(parse_megabytes("2G").value(), 2048);
    EXPECT_FALSE(parse_megabytes("lots"));
    EXPECT_FALSE(parse_megabytes("0"));
    EXPECT_FALSE(parse_megabytes("9999G"));
}

TEST(Arguments, ReadSizesOfThePool) {
    EXPECT_EQ(*parse_pool_bytes("20G"), 20ull << 30);
    EXPECT_EQ(*parse_pool_bytes("1.5T"), 1536ull << 30);
    EXPECT_EQ(*parse_pool_bytes("512M"), 512ull << 20);
    for (const char* wrong : {"", "20", "G", "-1G", "2000T", "20g", "1e99G", "20GB"})
        EXPECT_FALSE(parse_pool_bytes(wrong)) << wrong;
}

TEST(Arguments, ReadAmountsOfOutput) {
    EXPECT_EQ(parse_bytes("4096").value(), 4096);
    EXPECT_EQ(parse_bytes("64K").value(), 65'536);
    EXPECT_EQ(parse_bytes("1.5M").value(), 1'572'864);
    EXPECT_FALSE(parse_bytes("0"));
    EXPECT_FALSE(parse_bytes("1G")) << "more than a run may have";
    EXPECT_FALSE(parse_bytes("10X"));
}

TEST(Arguments, ReadVariables) {
    EXPECT_EQ(parse_env("B=x=y").value(), (std::pair<std::string, std::string>("B", "x=y")));
    EXPECT_EQ(parse_env("A=").value().second, "");
    EXPECT_FALSE(parse_env("novalue"));
    EXPECT_FALSE(parse_env("=x"));
}

TEST(Arguments, ReadFiles) {
    EXPECT_EQ(parse_file_argument("a/b.csv").value().remote, "b.csv");
    EXPECT_EQ(parse_file_argument("a/b.csv:data/c.csv").value().remote, "data/c.csv");
    EXPECT_EQ(parse_file_argument("a/b.csv:data/").value().remote, "data/b.csv");
    EXPECT_EQ(parse_file_argument("a/b.csv:/tmp/c").value().local, "a/b.csv");
    EXPECT_FALSE(parse_file_argument(""));
    EXPECT_FALSE(parse_file_argument(":x"));
    EXPECT_FALSE(parse_file_argument("dir/"));
}

ProgramWords split(const Words& words) {
    return split_program(words, [](const std::string& option) { return option == "--env"; })
        .value();
}

TEST(Arguments, BehindTheProgramAllWordsAreItsOwn) {
    const ProgramWords file = split({"--env", "A=1", "--quiet", "x.py", "--env", "-c", "-"});
    EXPECT_EQ(file.options, (Words{"--env", "A=1", "--quiet"}));
    EXPECT_EQ(file.program, "x.py");
    EXPECT_EQ(file.source, ProgramWords::Source::File);
    EXPECT_EQ(file.arguments, (Words{"--env", "-c", "-"}));

    const ProgramWords code = split({"--env", "-c", "-c", "print()", "--flag"});
    EXPECT_EQ(code.options, (Words{"--env", "-c"}));
    EXPECT_EQ(code.source, ProgramWords::Source::Code);
    EXPECT_EQ(code.program, "print()");
    EXPECT_EQ(code.arguments, Words{"--flag"});

    EXPECT_EQ(split({"-", "a"}).source, ProgramWords::Source::Stdin);
    EXPECT_EQ(split({"--", "-odd.py", "a"}).program, "-odd.py");
}

TEST(Arguments, NothingToRunIsAnError) {
    const auto none = [](const std::string&) { return false; };
    EXPECT_FALSE(split_program({}, none));
    EXPECT_FALSE(split_program({"--quiet"}, none));
    EXPECT_FALSE(split_program({"-c"}, none));
    EXPECT_FALSE(split_program({"--"}, none));
}

}  // namespace
}  // namespace cloister::cli
