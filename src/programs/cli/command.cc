#include "programs/cli/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "programs/cli/exit_code.h"

namespace cloister::cli {

std::optional<int> parse_words(CLI::App& app, Words words) {
    std::ranges::reverse(words);  // CLI11 takes them from the back
    try {
        app.parse(std::move(words));
    } catch (const CLI::ParseError& failure) {
        return app.exit(failure) == 0 ? 0 : kWrongUsage;
    }
    return std::nullopt;
}

}  // namespace cloister::cli
