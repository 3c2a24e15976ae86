// Text as JSON, for what is written piece by piece: frames of the agent, events, lines of a log.
#pragma once

#include <string>
#include <string_view>

namespace cloister {

// `text` as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
std::string json_quote(std::string_view text);
// Appends it to `out`. `text` has to be UTF-8.
void append_json_quoted(std::string& out, std::string_view text);

}  // namespace cloister
