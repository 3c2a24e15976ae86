#include "os/tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "base/ids.h"
#include "os/resolve.h"

namespace cloister::os {
namespace {

namespace fs = std::filesystem;

class TreeTest : public testing::Test {
  protected:
    void SetUp() override {
        path_ = fs::temp_directory_path() / ("tree-" + new_id());
        fs::create_directories(path_ / "top");
        holder_ = open_file(path_, O_RDONLY | O_DIRECTORY).value();
        top_ = open_file(path_ / "top", O_RDONLY | O_DIRECTORY).value();
    }
    void TearDown() override { fs::remove_all(path_); }

    void put(const std::string& path, const std::string& text = "x") const {
        fs::create_directories((path_ / path).parent_path());
        std::ofstream(path_ / path) << text;
    }
    std::string get(const std::string& path) const {
        std::ifstream in(path_ / path);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    Result<std::vector<std::string>> walked(const TreeBounds& bounds = {}) const {
        std::vector<std::string> paths;
        TRY_OK(walk_tree(top_, bounds, [&](const TreeEntry& entry) -> Result<Visit> {
            paths.push_back(entry.path);
            return entry.name == "skipped" ? Visit::Skip : Visit::Descend;
        }));
        return paths;
    }
    TreeBuilder builder() const { return TreeBuilder(top_.duplicate().value()); }

    fs::path path_;
    Fd holder_, top_;
};

TEST_F(TreeTest, PathsEndAtTheRoot) {
    put("top/inside", "good");
    put("outside", "bad");
    fs::create_symlink("/inside", path_ / "top/absolute");
    fs::create_symlink("../../../outside", path_ / "top/up");
    EXPECT_TRUE(open_in_root(top_, "/inside", O_RDONLY));
    EXPECT_TRUE(open_in_root(top_, "absolute", O_RDONLY));
    EXPECT_TRUE(open_in_root(top_, "../../inside", O_RDONLY));
    EXPECT_EQ(open_in_root(top_, "up", O_RDONLY).error().os_error, ENOENT);
    EXPECT_EQ(open_in_root(top_, "../outside", O_RDONLY).error().os_error, ENOENT);
    EXPECT_EQ(open_beneath(top_, "../outside", O_RDONLY).error().os_error, EXDEV);
    EXPECT_EQ(open_beneath(top_, "absolute", O_RDONLY).error().os_error, ELOOP);
}

TEST_F(TreeTest, LinksOfProcAreNotFollowed) {
    const Fd root = open_file("/", O_PATH | O_DIRECTORY).value();
    const std::string magic = path_of(top_) + "/.";
    EXPECT_EQ(open_in_root(root, magic, O_RDONLY).error().os_error, ELOOP);
    EXPECT_EQ(open_in_root(root, "/proc/self/root/etc", O_RDONLY).error().os_error, ELOOP);
}

TEST_F(TreeTest, WalksInOrderAndWithinItsBounds) {
    for (const char* path : {"top/b/1", "top/a", "top/b-", "top/b/2/x", "top/skipped/y"}) put(path);
    const std::vector<std::string> all = {"a", "b", "b/1", "b/2", "b/2/x", "b-", "skipped"};
    EXPECT_EQ(walked().value(), all);
    EXPECT_EQ(walked({.entries_max = 3}).error().kind, ErrorKind::TooLarge);
    EXPECT_EQ(walked({.depth_max = 1}).error().kind, ErrorKind::TooLarge);
    EXPECT_EQ(walked({.depth_max = 1, .too_deep = TreeBounds::TooDeep::Ignore}).value(),
              (std::vector<std::string>{"a", "b", "b-", "skipped"}));
}

TEST_F(TreeTest, RemovesTheDeepest) {
    Fd at = top_.duplicate().value();
    constexpr int kDepth = 1'200;  // more than descriptors suffice for
    for (int i = 0; i < kDepth; ++i) {
        ASSERT_EQ(::mkdirat(at.get(), "d", 0755), 0);
        at = open_at(at, "d", O_RDONLY | O_DIRECTORY).value();
    }
    at.reset();
    put("top/file");
    fs::create_symlink("/", path_ / "top/link");
    ASSERT_TRUE(remove_tree(holder_, "top"));
    EXPECT_FALSE(fs::exists(path_ / "top"));
    EXPECT_TRUE(remove_tree(holder_, "top"));  // nothing there is fine
}

TEST_F(TreeTest, RemovesALinkAndNotWhereItLeads) {
    put("kept/file");
    fs::create_symlink(path_ / "kept", path_ / "top/link");
    ASSERT_TRUE(remove_tree(top_, "link"));
    EXPECT_TRUE(fs::exists(path_ / "kept/file"));
}

TEST_F(TreeTest, Copies) {
    put("from", std::string(300'000, 'y'));
    const Fd from = open_at(holder_, "from", O_RDONLY).value();
    const Fd to = open_at(holder_, "to", O_WRONLY | O_CREAT, 0600).value();
    ASSERT_TRUE(copy_bytes(from, to));
    EXPECT_EQ(get("to"), std::string(300'000, 'y'));
}

TEST_F(TreeTest, BuildsBelowItsTopOnly) {
    put("outside", "kept");
    TreeBuilder build = builder();
    ASSERT_TRUE(write_all(build.file("a/b/file", 0644).value(), "one"));
    ASSERT_TRUE(write_all(build.file("a/b/file", 0644).value(), "two"));
    EXPECT_EQ(get("top/a/b/file"), "two");
    ASSERT_TRUE(build.hard_link("a/again", "a/b/file"));
    EXPECT_EQ(get("top/a/again"), "two");
    ASSERT_TRUE(build.symlink("out", ".."));
    for (const char* path :
         {"../evil", "/evil", "a/../../evil", "", "a//b", "out/evil", "a/b/file/c"}) {
        EXPECT_EQ(build.file(path, 0644).error().kind, ErrorKind::InvalidArgument) << path;
        EXPECT_FALSE(build.directory(path, 0755)) << path;
        EXPECT_FALSE(build.symlink(path, "x")) << path;
    }
    EXPECT_FALSE(build.hard_link("stolen", "out/outside"));
    EXPECT_FALSE(build.hard_link("stolen", "../outside"));
    EXPECT_FALSE(build.hard_link("stolen", "out"));
    EXPECT_FALSE(build.file("a", 0644));
    EXPECT_EQ(get("outside"), "kept");
    EXPECT_FALSE(fs::exists(path_ / "evil"));
}

TEST_F(TreeTest, MergesAllOrNothing) {
    put("new/a/x", "new");
    put("new/b", "new");
    put("top/a/x", "old");
    put("top/a/y", "old");
    put("top/b/z", "old");
    const Fd from = open_at(holder_, "new", O_RDONLY | O_DIRECTORY).value();
    EXPECT_EQ(merge_tree(from, top_).error().kind, ErrorKind::FailedPrecondition);
    EXPECT_EQ(get("top/a/x"), "old");
    fs::remove_all(path_ / "top/b");
    ASSERT_TRUE(merge_tree(from, top_));
    EXPECT_EQ(get("top/a/x"), "new");
    EXPECT_EQ(get("top/a/y"), "old");
    EXPECT_EQ(get("top/b"), "new");
}

}  // namespace
}  // namespace cloister::os
