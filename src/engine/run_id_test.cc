#include "engine/run_id.h"

#include <gtest/gtest.h>

#include "base/ids.h"

namespace cloister::engine {
namespace {

TEST(RunId, FollowsFromItsKey) {
    const std::string id = run_id_for("p", "s", "key");
    EXPECT_TRUE(is_id(id)) << id;
    EXPECT_EQ(run_id_for("p", "s", "key"), id);
    EXPECT_NE(run_id_for("p", "s", "yek"), id);
    EXPECT_NE(run_id_for("p", "t", "key"), id);
    EXPECT_NE(run_id_for("q", "s", "key"), id);
}

TEST(RunId, IsRandomWithoutOne) {
    EXPECT_TRUE(is_id(run_id_for("p", "s", "")));
    EXPECT_NE(run_id_for("p", "s", ""), run_id_for("p", "s", ""));
}

}  // namespace
}  // namespace cloister::engine
