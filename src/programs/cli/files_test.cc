#include "programs/cli/files.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace cloister::cli {
namespace {

TEST(Files, OfASandboxStayBelowTheDirectory) {
    EXPECT_EQ(path_below_home("/home/user/res/a.txt"), "res/a.txt");
    EXPECT_EQ(path_below_home("/tmp/b"), "tmp/b");
    EXPECT_EQ(path_below_home("/home/user/./c"), "c");
    EXPECT_EQ(path_below_home("/home/user//etc/d"), "etc/d");
    EXPECT_EQ(path_below_home("/home/user/../../etc/passwd"), "");
    EXPECT_EQ(path_below_home(".."), "");
}

TEST(Files, AreSavedWithTheirDirectoriesButNotThroughALink) {
    const std::string root = "/tmp/cloister-files-test";
    std::filesystem::remove_all(root);
    ASSERT_TRUE(save_file(root + "/a/b/c.txt", "one"));
    ASSERT_TRUE(save_file(root + "/a/b/c.txt", "2"));
    EXPECT_EQ(os::read_file(root + "/a/b/c.txt", 10).value(), "2");
    std::filesystem::create_symlink(root + "/elsewhere", root + "/link");
    EXPECT_FALSE(save_file(root + "/link", "x"));
    EXPECT_FALSE(std::filesystem::exists(root + "/elsewhere"));
    std::filesystem::remove_all(root);
}

TEST(Files, ThatAreMissingAreNamed) {
    auto missing = FileSource::open("/tmp/cloister-no-such-file");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().kind, ErrorKind::NotFound);
    EXPECT_EQ(FileSource::open("/tmp").error().kind, ErrorKind::InvalidArgument);
}

}  // namespace
}  // namespace cloister::cli
