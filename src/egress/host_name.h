// Names of hosts in their one canonical form: lower case, no dot at the end, letters, digits and
// hyphens only. Everything that judges a name parses it here first, whoever wrote it: a policy, a
// DNS question, a TLS hello, an HTTP request.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/ip.h"
#include "base/result.h"

namespace cloister::egress {

inline constexpr size_t kNameMax = 253;
inline constexpr size_t kLabelMax = 63;

// The canonical form. InvalidArgument, with the reason, for what is no host name: other characters
// (a name beyond ASCII is given in its xn-- form), an empty or too long label, a name that a
// resolver would take for a number.
Result<std::string> canonical_name(std::string_view text);

// A host as clients write it: an address in any spelling, or a name.
using Host = std::variant<IpAddress, std::string>;
Result<Host> parse_host(std::string_view text);

}  // namespace cloister::egress
