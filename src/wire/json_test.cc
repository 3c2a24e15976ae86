#include "wire/json.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace cloister {
namespace {

TEST(Json, RefusesWhatIsNotOneValueInUtf8) {
    EXPECT_TRUE(parse_json("{\"a\": [1, 2]} \n"));
    EXPECT_FALSE(parse_json(""));
    EXPECT_FALSE(parse_json("{} {}"));
    EXPECT_FALSE(parse_json("{\"a\": }"));
    EXPECT_FALSE(parse_json("\"\xFF\""));
    EXPECT_FALSE(parse_json(std::string(limits::kJsonDepthMax + 1, '[')));
    EXPECT_FALSE(parse_object("[1]"));
}

TEST(Json, ReadsFieldsWithinTheirBounds) {
    json::object object =
        parse_object(R"({"code":"x","n":3,"env":{"A":"b"},"args":["p","q"]})").value();
    FieldReader in(object, "");
    EXPECT_EQ(in.required_string("code", 10), "x");
    EXPECT_EQ(in.optional_int("n", 1, 5), 3);
    EXPECT_EQ(in.optional_string_map("env", 4, 100).value().at("A"), "b");
    EXPECT_EQ(in.optional_strings("args", 4, 100).value().size(), 2U);
    EXPECT_EQ(in.optional_bool("absent"), std::nullopt);
    EXPECT_TRUE(in.finish());
}

TEST(Json, KeepsTheFirstErrorAndNamesItsField) {
    json::object object = parse_object(R"({"n":99,"code":7})").value();
    FieldReader in(object, "files[0].");
    in.optional_int("n", 1, 5);
    in.required_string("code", 10);
    Result<void> end = in.finish();
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().field, "files[0].n");
    EXPECT_EQ(end.error().kind, ErrorKind::InvalidArgument);
}

TEST(Json, NamesAFieldThatNobodyKnows) {
    json::object object = parse_object(R"({"code":"x","timeout":3})").value();
    FieldReader in(object, "");
    in.required_string("code", 10);
    Result<void> end = in.finish();
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().field, "timeout");
}

}  // namespace
}  // namespace cloister
