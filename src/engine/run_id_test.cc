#include "engine/run_id.h"

#include <gtest/gtest.h>

#include "base/ids.h"

namespace cloister::engine {
namespace {

TEST(RunId, FollowsFromItsKey) {
    const std::string id = run_id_for("p", "s", "key", "1");
    EXPECT_TRUE(is_id(id)) << id;
    EXPECT_EQ(run_id_for("p", "s", "key", "1"), id);
    EXPECT_NE(run_id_for("p", "s", "yek", "1"), id);
    EXPECT_NE(run_id_for("p", "t", "key", "1"), id);
    EXPECT_NE(run_id_for("p", "s", "key", "2"), id);
    EXPECT_NE(run_id_for("q", "s", "key", "1"), id);
}

TEST(RunId, IsRandomWithoutOne) {
    EXPECT_TRUE(is_id(run_id_for("p", "s", "", "1")));
    EXPECT_NE(run_id_for("p", "s", "", "1"), run_id_for("p", "s", "", "1"));
}

}  // namespace
}  // namespace cloister::engine
