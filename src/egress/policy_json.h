// Policies as JSON: {"mode": "filtered", "allow_out": […], "deny_out": […]}.
#pragma once

#include <string>

#include "egress/policy.h"
#include "wire/json.h"

namespace cloister::egress {

json::object policy_json(const PolicySpec& spec);
std::string policy_text(const PolicySpec& spec);
// Field by field; entries themselves are read by Policy::create. Without `mode` it is `filtered` if
// there is a list. `prefix` is put before field names in errors.
Result<PolicySpec> policy_from(const json::object& object, std::string prefix);
Result<PolicySpec> policy_from(std::string_view text);

}  // namespace cloister::egress
