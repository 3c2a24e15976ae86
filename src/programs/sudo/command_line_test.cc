#include "programs/sudo/command_line.h"

#include <gtest/gtest.h>

namespace cloister::sudo {
namespace {

using Words = std::vector<std::string>;

CommandLine parsed(const Words& words) {
    auto line = parse_command_line(words);
    EXPECT_TRUE(line) << line.error().message;
    return line ? *line : CommandLine{};
}

std::string complaint(const Words& words) {
    const auto line = parse_command_line(words);
    return line ? "" : line.error().message;
}

TEST(SudoCommandLine, TakesACommandWithItsOwnOptions) {
    const CommandLine line = parsed({"apt-get", "install", "-y", "--no-install-recommends", "jq"});
    EXPECT_EQ(line.task, Task::Run);
    EXPECT_EQ(line.identity, RootIdentity::Root);
    EXPECT_EQ(line.command, Words({"apt-get", "install", "-y", "--no-install-recommends", "jq"}));
    EXPECT_EQ(parsed({"--", "-x"}).command, Words({"-x"}));
}

TEST(SudoCommandLine, KnowsTwoUsers) {
    for (const Words& words :
         {Words{"-u", "user", "id"}, Words{"-uuser", "id"}, Words{"--user=user", "id"},
          Words{"--user", "user", "id"}, Words{"-nu", "user", "id"}, Words{"-u", "#1000", "id"}}) {
        const CommandLine line = parsed(words);
        EXPECT_EQ(line.identity, RootIdentity::User);
        EXPECT_EQ(line.command, Words({"id"}));
    }
    EXPECT_EQ(parsed({"-u", "root", "id"}).identity, RootIdentity::Root);
    EXPECT_NE(complaint({"-u", "postgres", "psql"}).find("sudo su postgres"), std::string::npos);
    EXPECT_NE(complaint({"-u"}).find("-u needs a word"), std::string::npos);
}

TEST(SudoCommandLine, TakesWhatPeopleTypeAboutPasswords) {
    EXPECT_EQ(parsed({"-n", "true"}).command, Words({"true"}));
    EXPECT_EQ(parsed({"-S", "-p", "", "true"}).command, Words({"true"}));
    EXPECT_EQ(parsed({"-k", "true"}).task, Task::Run);
    EXPECT_EQ(parsed({"-k"}).task, Task::Nothing);
    EXPECT_EQ(parsed({"-K"}).task, Task::Nothing);
    EXPECT_EQ(parsed({"-v"}).task, Task::Ask);
    EXPECT_EQ(parsed({"-l"}).task, Task::List);
    EXPECT_EQ(parsed({"--version"}).task, Task::Version);
    EXPECT_EQ(parsed({"--help"}).task, Task::Help);
}

TEST(SudoCommandLine, KnowsShells) {
    EXPECT_EQ(parsed({"-i"}).shell, ShellKind::Login);
    EXPECT_EQ(parsed({"-s"}).shell, ShellKind::Plain);
    const CommandLine line = parsed({"-i", "echo", "$HOME"});
    EXPECT_EQ(line.shell, ShellKind::Login);
    EXPECT_EQ(line.command, Words({"echo", "$HOME"}));
}

TEST(SudoCommandLine, TakesTheEnvironment) {
    EXPECT_EQ(parsed({"-E", "env"}).environment, Environment::Kept);
    EXPECT_EQ(parsed({"-EH", "env"}).home, Home::OfTarget);
    const CommandLine some = parsed({"--preserve-env=A,B,,C", "env"});
    EXPECT_EQ(some.environment, Environment::Fresh);
    EXPECT_EQ(some.kept, Words({"A", "B", "C"}));
    const CommandLine line =
        parsed({"DEBIAN_FRONTEND=noninteractive", "-E", "X=a=b", "apt", "Y=1"});
    ASSERT_EQ(line.assignments.size(), 2u);
    EXPECT_EQ(line.assignments[1], std::pair(std::string("X"), std::string("a=b")));
    EXPECT_EQ(line.command, Words({"apt", "Y=1"}));
    EXPECT_EQ(parsed({"./a=b"}).command, Words({"./a=b"})) << "a path is no variable";
}

TEST(SudoCommandLine, NamesWhatItDoesNotUnderstand) {
    EXPECT_NE(complaint({"-g", "video", "id"}).find("-g is not known"), std::string::npos);
    EXPECT_NE(complaint({"-nx", "id"}).find("-x is not known"), std::string::npos);
    EXPECT_NE(complaint({"--chroot=/x", "id"}).find("--chroot=/x is not known"), std::string::npos);
    EXPECT_NE(complaint({"--login=x"}).find("--login=x is not known"), std::string::npos);
    EXPECT_NE(complaint({}).find("no command"), std::string::npos);
    EXPECT_NE(complaint({"A=1"}).find("no command"), std::string::npos);
}

}  // namespace
}  // namespace cloister::sudo
