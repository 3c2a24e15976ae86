#include "programs/sudo/request.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

namespace cloister::sudo {
namespace {

using Words = std::vector<std::string>;

const Caller kUser{.uid = 1000,
                   .cwd = "/tmp",
                   .environment = {{"HOME", "/home/user"},
                                   {"PATH", "/home/user/.local/bin:/usr/bin"},
                                   {"TERM", "xterm"},
                                   {"LC_ALL", "C.UTF-8"},
                                   {"SECRET", "x"},
                                   {"PYTHONPATH", "/tmp"}}};

bool usual(const std::string& path) {
    return path == "/usr/bin/id" || path == "/usr/local/bin/tool" || path == "/usr/bin/tool" ||
           path == "/bin/bash";
}

RootRequest asked(const Words& words, const Caller& caller = kUser) {
    const auto request = request_of(parse_command_line(words).value(), caller, usual);
    EXPECT_TRUE(request) << request.error().message;
    return request ? *request : RootRequest{};
}

std::optional<std::string> variable(const RootRequest& request, const std::string& name) {
    for (const std::string& entry : request.env) {
        if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
    }
    return std::nullopt;
}

TEST(SudoRequest, FindsTheCommandOnTheSecurePath) {
    EXPECT_EQ(asked({"id", "-u"}).argv, Words({"/usr/bin/id", "-u"}));
    EXPECT_EQ(asked({"tool"}).argv, Words({"/usr/local/bin/tool"}));
    EXPECT_EQ(asked({"./own"}).argv, Words({"./own"}));
    EXPECT_EQ(asked({"id"}).cwd, "/tmp");
    const auto missing = request_of(parse_command_line({"nothing"}).value(), kUser, usual);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().message, "nothing: command not found");
}

TEST(SudoRequest, StartsWithAnEnvironmentOfRoot) {
    const RootRequest request = asked({"X=1", "id"});
    EXPECT_EQ(variable(request, "HOME"), "/root");
    EXPECT_EQ(variable(request, "USER"), "root");
    EXPECT_EQ(variable(request, "PATH"),
              "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    EXPECT_EQ(variable(request, "SUDO_USER"), "user");
    EXPECT_EQ(variable(request, "SUDO_UID"), "1000");
    EXPECT_EQ(variable(request, "SUDO_COMMAND"), "/usr/bin/id");
    EXPECT_EQ(variable(request, "TERM"), "xterm");
    EXPECT_EQ(variable(request, "LC_ALL"), "C.UTF-8");
    EXPECT_EQ(variable(request, "X"), "1");
    EXPECT_FALSE(variable(request, "SECRET"));
    EXPECT_FALSE(variable(request, "PYTHONPATH"));
}

TEST(SudoRequest, KeepsTheEnvironmentWhenAsked) {
    const RootRequest all = asked({"-E", "id"});
    EXPECT_EQ(variable(all, "SECRET"), "x");
    EXPECT_EQ(variable(all, "HOME"), "/home/user");
    EXPECT_EQ(variable(all, "USER"), "root");
    EXPECT_EQ(variable(asked({"-E", "-H", "id"}), "HOME"), "/root");
    const RootRequest one = asked({"--preserve-env=SECRET", "id"});
    EXPECT_EQ(variable(one, "SECRET"), "x");
    EXPECT_FALSE(variable(one, "PYTHONPATH"));
}

TEST(SudoRequest, BecomesTheUserToo) {
    const Caller root{.uid = 0, .cwd = "/root", .environment = {}};
    const RootRequest request = asked({"-u", "user", "id"}, root);
    EXPECT_EQ(request.identity, RootIdentity::User);
    EXPECT_EQ(variable(request, "HOME"), "/home/user");
    EXPECT_EQ(variable(request, "SUDO_USER"), "root");
}

TEST(SudoRequest, StartsShells) {
    const RootRequest login = asked({"-i"});
    EXPECT_EQ(login.argv, Words({"/bin/bash", "-l"}));
    EXPECT_EQ(login.cwd, "/root");
    EXPECT_FALSE(variable(login, "LC_ALL"));
    EXPECT_EQ(asked({"-s"}).argv, Words({"/bin/bash"}));
    EXPECT_EQ(asked({"-s", "echo", "a b", "$HOME", "x;y", ""}).argv,
              Words({"/bin/bash", "-c", "echo a\\ b $HOME x\\;y ''"}));
}

TEST(SudoRequest, AQuestionHasNoCommand) {
    EXPECT_TRUE(asked({"-v"}).argv.empty());
    EXPECT_TRUE(asked({"-l", "id"}).argv.empty());
}

}  // namespace
}  // namespace cloister::sudo
