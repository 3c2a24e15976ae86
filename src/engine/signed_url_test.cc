#include "engine/signed_url.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/ids.h"

namespace cloister::engine {
namespace {

namespace fs = std::filesystem;

class UrlSignerTest : public testing::Test {
  protected:
    void SetUp() override {
        directory_ = fs::temp_directory_path() / ("signer-" + new_id());
        fs::create_directories(directory_);
    }
    void TearDown() override { fs::remove_all(directory_); }

    fs::path directory_;
    const Grant grant_{.caller = {.project = "p", .key_id = "k"},
                       .sandbox = "s",
                       .path = "a/b.txt",
                       .access = FileAccess::Read,
                       .user = "user",
                       .expires_ms = 1'000};
};

TEST_F(UrlSignerTest, KnowsItsOwnAlsoLater) {
    const std::string signature = UrlSigner::load(directory_).value()->sign(grant_);
    const auto signer = UrlSigner::load(directory_).value();
    const auto grant = signer->check(signature, "s", "a/b.txt", FileAccess::Read, 999);
    ASSERT_TRUE(grant);
    EXPECT_EQ(grant->caller.project, "p");
    EXPECT_EQ(grant->caller.key_id, "k");
    EXPECT_EQ(grant->user, "user");
    EXPECT_EQ(fs::status(directory_ / "signing.key").permissions(), fs::perms(0600));
}

TEST_F(UrlSignerTest, IsForJustThat) {
    const auto signer = UrlSigner::load(directory_).value();
    const std::string signature = signer->sign(grant_);
    const auto refused = [&](const std::string& text, const char* sandbox, const char* path,
                             FileAccess access, int64_t now) {
        const auto grant = signer->check(text, sandbox, path, access, now);
        return !grant && grant.error().kind == ErrorKind::PermissionDenied;
    };
    EXPECT_TRUE(refused(signature, "t", "a/b.txt", FileAccess::Read, 0));
    EXPECT_TRUE(refused(signature, "s", "a/c.txt", FileAccess::Read, 0));
    EXPECT_TRUE(refused(signature, "s", "a/b.txt", FileAccess::Write, 0));
    EXPECT_TRUE(refused(signature, "s", "a/b.txt", FileAccess::Read, 1'000));
    EXPECT_TRUE(refused("", "s", "a/b.txt", FileAccess::Read, 0));
    EXPECT_TRUE(refused("v1......", "s", "a/b.txt", FileAccess::Read, 0));
    for (size_t i = 0; i < signature.size(); ++i) {
        std::string changed = signature;
        changed[i] = changed[i] == '1' ? '2' : '1';
        EXPECT_TRUE(refused(changed, "s", "a/b.txt", FileAccess::Read, 0)) << changed;
    }
    // Another service's secret is another.
    fs::create_directories(directory_ / "other");
    EXPECT_FALSE(UrlSigner::load(directory_ / "other")
                     .value()
                     ->check(signature, "s", "a/b.txt", FileAccess::Read, 0));
}

}  // namespace
}  // namespace cloister::engine
