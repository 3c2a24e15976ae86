#include "base/ids.h"

#include <gtest/gtest.h>

#include <set>

namespace cloister {
namespace {

TEST(Ids, NewIdsHaveTheFormAndDiffer) {
    std::set<std::string> seen;
    for (int i = 0; i < 1000; ++i) {
        std::string id = new_id();
        EXPECT_TRUE(is_id(id)) << id;
        EXPECT_TRUE(seen.insert(id).second);
    }
}

TEST(Ids, RejectsWhatIsNotAnId) {
    EXPECT_TRUE(is_id("a2345678901234567890"));
    EXPECT_FALSE(is_id(""));
    EXPECT_FALSE(is_id("12345678901234567890"));
    EXPECT_FALSE(is_id("a234567890123456789"));
    EXPECT_FALSE(is_id("a23456789012345678901"));
    EXPECT_FALSE(is_id("a234567890123456789A"));
    EXPECT_FALSE(is_id("a2345678901234567/.."));
    EXPECT_FALSE(is_id(std::string("a23456789012345678\0x", 20)));
}

TEST(Ids, ApiKeysHaveTheFormThatE2bClientsAccept) {
    std::string key = new_api_key();
    EXPECT_EQ(key.size(), 44U);
    EXPECT_TRUE(is_api_key(key));
    EXPECT_NE(key, new_api_key());
    EXPECT_FALSE(is_api_key("e2b_" + std::string(40, 'g')));
    EXPECT_FALSE(is_api_key("xyz_" + std::string(40, 'a')));
    EXPECT_FALSE(is_api_key("e2b_" + std::string(39, 'a')));
}

}  // namespace
}  // namespace cloister
