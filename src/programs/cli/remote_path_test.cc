#include "programs/cli/remote_path.h"

#include <gtest/gtest.h>

namespace cloister::cli {
namespace {

constexpr const char* kId = "abcdefghij0123456789";

TEST(RemotePath, IsWhatHasAnIdBeforeIt) {
    const CopyPlace remote = copy_place(std::string(kId) + ":a/b:c");
    EXPECT_EQ(remote.sandbox, kId);
    EXPECT_EQ(remote.path, "a/b:c");
    EXPECT_EQ(copy_place(kId).path, "/home/user");
    EXPECT_EQ(copy_place(std::string(kId) + ":").path, "/home/user");
    for (const char* here : {"file", "C:x", "-", "./abcdefghij0123456789:a", "a:b"}) {
        EXPECT_FALSE(copy_place(here).remote()) << here;
        EXPECT_EQ(copy_place(here).path, here);
    }
}

TEST(RemotePath, BecomesATarget) {
    EXPECT_EQ(files_target({.sandbox = kId, .path = "a b&c"}, "/stat", "root"),
              "/v1/sandboxes/abcdefghij0123456789/files/stat?path=a%20b%26c&user=root");
    EXPECT_EQ(last_part("a/b/"), "b");
    EXPECT_EQ(last_part("b"), "b");
    EXPECT_EQ(last_part("/"), "");
}

}  // namespace
}  // namespace cloister::cli
