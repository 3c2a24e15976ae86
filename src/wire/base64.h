// Base64 with padding (RFC 4648 §4), for bytes inside JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cloister {

std::string base64_encode(std::string_view bytes);
// nullopt for anything that is not exactly one encoding: other characters, wrong length, bits
// behind the end.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace cloister
