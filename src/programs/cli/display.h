// Which of the forms of a display a terminal gets: a file for pictures and pages, text for the
// rest.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "wire/json.h"

namespace cloister::cli {

struct Shown {
    std::string text;       // for standard output, or empty
    std::string extension;  // ".png": `bytes` belong into a file; or empty
    std::string bytes;
};
// `data` maps MIME types to text, base64 or JSON values (contract/openapi.yaml, Result).
Shown choose_form(const json::object& data);

// nullopt for what is not base64. Line breaks are skipped.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace cloister::cli
