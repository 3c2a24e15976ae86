#include "engine/keys.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/ids.h"
#include "store/sqlite_store.h"

namespace cloister::engine {
namespace {

class Keys : public testing::Test {
  protected:
    void SetUp() override {
        directory_ = std::filesystem::temp_directory_path() / ("keys-" + new_id());
        std::filesystem::create_directories(directory_);
        reload();
        project_ = *store_->ensure_project("local", 1);
    }
    void TearDown() override {
        ring_.reset();
        store_.reset();
        std::filesystem::remove_all(directory_);
    }
    void reload() {
        ring_.reset();
        store_.reset();
        store_ = *store::open_sqlite_store(directory_ + "/k.db");
        ring_ = *KeyRing::load(store_);
    }

    std::string directory_, project_;
    std::shared_ptr<store::Store> store_;
    std::unique_ptr<KeyRing> ring_;
};

TEST_F(Keys, AKeyOpensItsProjectUntilItIsRevoked) {
    const auto first = ring_->create(project_, "first");
    const auto second = ring_->create(project_, "second");
    EXPECT_EQ(ring_->check(first->text)->project, project_);
    ASSERT_TRUE(ring_->revoke(project_, first->info.id));
    EXPECT_EQ(ring_->check(first->text).error().kind, ErrorKind::Unauthenticated);
    EXPECT_EQ(ring_->revoke(project_, first->info.id).error().kind, ErrorKind::NotFound);
    reload();
    EXPECT_FALSE(ring_->check(first->text));
    EXPECT_EQ(ring_->check(second->text)->key_id, second->info.id);
    ASSERT_EQ(ring_->list(project_).size(), 1U);
    EXPECT_TRUE(ring_->list(project_).front().last_used_ms.has_value());
}

TEST_F(Keys, OtherTextsOpenNothing) {
    const auto made = ring_->create(project_, "");
    std::string near = made->text;
    near.back() = near.back() == '0' ? '1' : '0';
    for (const std::string& text :
         {near, std::string(), std::string("e2b_"), made->text + "0", std::string(5'000, 'e')}) {
        EXPECT_FALSE(ring_->check(text)) << text;
    }
}

TEST_F(Keys, TheLastKeyStaysAndOthersAreOfAnotherProject) {
    const auto made = ring_->create(project_, "");
    const std::string other = *store_->ensure_project("other", 1);
    ASSERT_TRUE(ring_->create(other, ""));
    EXPECT_EQ(ring_->revoke(project_, made->info.id).error().kind, ErrorKind::FailedPrecondition);
    EXPECT_EQ(ring_->revoke(other, made->info.id).error().kind, ErrorKind::NotFound);
}

TEST_F(Keys, AChosenKeyIsEnteredOnce) {
    const std::string text = new_api_key();
    ASSERT_TRUE(ring_->ensure(project_, "env", text));
    ASSERT_TRUE(ring_->ensure(project_, "env", text));
    EXPECT_EQ(ring_->list(project_).size(), 1U);
    EXPECT_EQ(ring_->ensure(project_, "env", "hello").error().kind, ErrorKind::InvalidArgument);
}

}  // namespace
}  // namespace cloister::engine
