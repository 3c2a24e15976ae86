#include "egress/policy_json.h"

#include <gtest/gtest.h>

namespace cloister::egress {
namespace {

TEST(PolicyJson, GoesThereAndBack) {
    const PolicySpec filtered{
        .mode = Mode::Filtered, .allow_out = {"a.example"}, .deny_out = {"ALL_TRAFFIC"}};
    for (const PolicySpec& spec : {PolicySpec{}, PolicySpec{.mode = Mode::Open},
                                   PolicySpec{.mode = Mode::Filtered}, filtered}) {
        EXPECT_EQ(policy_from(policy_text(spec)).value(), spec) << policy_text(spec);
    }
    EXPECT_EQ(policy_text({}), R"({"mode":"disabled"})");
}

TEST(PolicyJson, AListAloneIsFiltered) {
    EXPECT_EQ(policy_from(R"({"allow_out": []})").value().mode, Mode::Filtered);
    EXPECT_EQ(policy_from(R"({"deny_out": ["a"]})").value().deny_out.size(), 1U);
}

TEST(PolicyJson, NamesTheFieldAtFault) {
    for (const char* text : {"{}", R"({"mode": "on"})", R"({"mode": 1})"}) {
        const auto refused = policy_from(text);
        ASSERT_FALSE(refused) << text;
        EXPECT_EQ(refused.error().field, "mode") << text;
    }
    EXPECT_EQ(policy_from(R"({"allow_out": "a"})").error().field, "allow_out");
    EXPECT_EQ(policy_from(R"({"allow_out": [1]})").error().kind, ErrorKind::InvalidArgument);
    EXPECT_FALSE(policy_from(R"({"mode": "open", "rules": {}})"));
    EXPECT_FALSE(policy_from("[]"));
}

}  // namespace
}  // namespace cloister::egress
