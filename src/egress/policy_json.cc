#include "egress/policy_json.h"

namespace cloister::egress {
namespace {

constexpr size_t kWordMax = 64;

json::array list_json(const std::vector<std::string>& list) {
    return json::array(list.begin(), list.end());
}

}  // namespace

json::object policy_json(const PolicySpec& spec) {
    json::object out{{"mode", to_string(spec.mode)}};
    if (spec.mode != Mode::Filtered) return out;
    out["allow_out"] = list_json(spec.allow_out);
    out["deny_out"] = list_json(spec.deny_out);
    return out;
}

std::string policy_text(const PolicySpec& spec) {
    return json::serialize(policy_json(spec));
}

Result<PolicySpec> policy_from(const json::object& object, std::string prefix) {
    FieldReader in(object, std::move(prefix));
    const auto word = in.optional_string("mode", kWordMax);
    const auto allow = in.optional_strings("allow_out", kEntriesMax, kEntriesBytesMax);
    const auto deny = in.optional_strings("deny_out", kEntriesMax, kEntriesBytesMax);
    const auto mode = mode_from(word.value_or("filtered"));
    if (!mode) in.fail("mode", "`mode` must be `disabled`, `open` or `filtered`");
    if (!word && !allow && !deny)
        in.fail("mode", "give `mode`: `disabled`, `open` or `filtered`, or one of the lists");
    TRY_OK(in.finish());
    return PolicySpec{.mode = *mode,
                      .allow_out = allow.value_or(std::vector<std::string>()),
                      .deny_out = deny.value_or(std::vector<std::string>())};
}

Result<PolicySpec> policy_from(std::string_view text) {
    const json::object object = TRY(parse_object(text));
    return policy_from(object, "");
}

}  // namespace cloister::egress
