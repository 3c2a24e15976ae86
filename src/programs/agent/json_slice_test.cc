#include "programs/agent/json_slice.h"

#include <gtest/gtest.h>

#include <vector>

namespace cloister::agent {
namespace {

TEST(JsonSlice, TellsWhereTheMembersStand) {
    const auto members = split_object(R"( {"a" : [1, {"b": "}"}] , "msg_type":"x", "e":{} } )");
    ASSERT_TRUE(members);
    ASSERT_EQ(members->size(), 3U);
    EXPECT_EQ(find_member(*members, "a"), R"([1, {"b": "}"}])");
    EXPECT_EQ(plain_string(find_member(*members, "msg_type")), "x");
    EXPECT_EQ(find_member(*members, "e"), "{}");
    EXPECT_EQ(find_member(*members, "b"), "");
}

TEST(JsonSlice, TakesWhatJsonAllows) {
    for (const char* text :
         {"{}", R"({"":null})", R"({"a":-0.5e-10,"b":[true,false,[]]})",
          R"({"a":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00 é"})", "{\"a\":\t1\r\n}"}) {
        EXPECT_TRUE(split_object(text)) << text;
    }
}

TEST(JsonSlice, RefusesEverythingElse) {
    for (const char* text : {"",
                             "[]",
                             "1",
                             "{",
                             R"({"a"})",
                             R"({"a":})",
                             R"({"a":1,})",
                             R"({"a":1}})",
                             R"({"a":1} x)",
                             R"({a:1})",
                             R"({"a":01})",
                             R"({"a":1.})",
                             R"({"a":+1})",
                             R"({"a":1e})",
                             R"({"a":NaN})",
                             R"({"a":1e9999})",
                             R"({"a":tru})",
                             R"({"a":"\x"})",
                             R"({"a":"\u12"})",
                             R"({"a":"\ud800"})",
                             R"({"a":"\udc00"})",
                             "{\"a\":\"\n\"}",
                             "{\"a\":\"\xff\"}",
                             R"({"a":"b)",
                             R"({"a":[1 2]})",
                             R"({"a":[1,]})",
                             R"({"a":"b"},"event":"ended"})"}) {
        EXPECT_FALSE(split_object(text)) << text;
    }
}

TEST(JsonSlice, NeverLooksBeyondATextThatIsCutOff) {
    const std::string whole = R"({"a":["\ud83d\ude00",-1.5e+10,true,null]})";
    ASSERT_TRUE(split_object(whole));
    for (size_t length = 0; length < whole.size(); ++length) {
        const std::vector<char> cut(whole.begin(), whole.begin() + static_cast<long>(length));
        EXPECT_FALSE(split_object({cut.data(), cut.size()})) << length;
    }
}

TEST(JsonSlice, BoundsDepthMembersAndNumbers) {
    const auto nested = [](size_t depth) {
        return "{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
    };
    EXPECT_TRUE(split_object(nested(kSliceDepthMax)));
    EXPECT_FALSE(split_object(nested(kSliceDepthMax + 1)));
    EXPECT_FALSE(split_object(nested(1'000'000)));
    EXPECT_FALSE(split_object("{\"a\":" + std::string(400, '1') + "}"));
    std::string many = "{";
    for (size_t i = 0; i <= kJsonMembersMax; ++i) many += "\"a\":1,";
    many.back() = '}';
    EXPECT_FALSE(split_object(many));
}

TEST(JsonSlice, OnlyPlainStringsAreReadAsWords) {
    EXPECT_EQ(plain_string(R"("ok")"), "ok");
    EXPECT_EQ(plain_string(R"("o\u006b")"), "");
    EXPECT_EQ(plain_string("12"), "");
    EXPECT_EQ(plain_string(""), "");
}

}  // namespace
}  // namespace cloister::agent
