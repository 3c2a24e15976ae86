// What bash has to say about code that it cannot parse.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cloister::shell {

struct SyntaxError {
    int64_t line = 0;  // in the code
    std::string message;
    std::vector<std::string> lines;  // all that bash wrote
};

// Lets a bash of its own parse `code` without running it; nothing if it can be parsed.
std::optional<SyntaxError> find_syntax_error(const std::string& bash, std::string_view code);
// The error in what `bash -n` wrote.
std::optional<SyntaxError> syntax_error_in(std::string_view words);

}  // namespace cloister::shell
