#include "store/sqlite.h"

#include <gtest/gtest.h>

namespace cloister::store {
namespace {

Database memory() {
    auto database = Database::open(":memory:");
    EXPECT_TRUE(database);
    EXPECT_TRUE(database->run("CREATE TABLE t (name TEXT, size INTEGER)"));
    return std::move(*database);
}

TEST(Sqlite, ValuesComeBackAsTheyWentIn) {
    Database db = memory();
    const std::string with_nul("a\0b'; DROP TABLE t; --", 22);
    ASSERT_TRUE(db.run("INSERT INTO t VALUES (?, ?)", with_nul, int64_t{-5}));
    ASSERT_TRUE(
        db.run("INSERT INTO t VALUES (?, ?)", std::string_view(), std::optional<int64_t>()));
    auto rows = db.query("SELECT name, size FROM t ORDER BY rowid");
    ASSERT_TRUE(rows);
    ASSERT_TRUE(*rows->next());
    EXPECT_EQ(rows->text(0), with_nul);
    EXPECT_EQ(rows->maybe_integer(1), -5);
    ASSERT_TRUE(*rows->next());
    EXPECT_EQ(rows->text(0), "");
    EXPECT_EQ(rows->maybe_integer(1), std::nullopt);
    EXPECT_FALSE(*rows->next());
}

TEST(Sqlite, AStatementIsUsableAgainAfterAnUnfinishedQuery) {
    Database db = memory();
    for (const char* name : {"a", "b"})
        ASSERT_TRUE(db.run("INSERT INTO t VALUES (?, 1)", std::string_view(name)));
    for (int round = 0; round < 3; ++round) {
        auto rows = db.query("SELECT name FROM t WHERE size = ? ORDER BY name", int64_t{1});
        ASSERT_TRUE(rows);
        ASSERT_TRUE(*rows->next());
        EXPECT_EQ(rows->text(0), "a");
    }
}

TEST(Sqlite, FailuresNameTheStatement) {
    Database db = memory();
    const auto result = db.run("INSERT INTO nowhere VALUES (1)");
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, ErrorKind::Internal);
    EXPECT_NE(result.error().message.find("nowhere"), std::string::npos);
}

TEST(Sqlite, OpeningAnImpossiblePathFails) {
    EXPECT_FALSE(Database::open("/dev/null/x.db"));
}

}  // namespace
}  // namespace cloister::store
