#include "base/log.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/time.h"
#include "base/utf8.h"

namespace cloister {
namespace {

std::string program_name = "cloister";  // set once by log_open
LogLevel lowest_level = LogLevel::Info;

std::string_view word_of(LogLevel level) {
    switch (level) {
        case LogLevel::Debug:
            return "debug";
        case LogLevel::Info:
            return "info";
        case LogLevel::Warn:
            return "warn";
        case LogLevel::Error:
            return "error";
    }
    return "error";
}

}  // namespace

void log_open(std::string_view program, LogLevel lowest) {
    program_name = program;
    lowest_level = lowest;
}

std::optional<LogLevel> log_level_from(std::string_view word) {
    for (LogLevel level : {LogLevel::Debug, LogLevel::Info, LogLevel::Warn, LogLevel::Error}) {
        if (word_of(level) == word) return level;
    }
    return std::nullopt;
}

void log_line(LogLevel level, std::string_view message, LogFields fields) {
    if (level < lowest_level) return;
    std::string line =
        fmt::format(R"({{"time":"{}","level":"{}","program":{},"message":{})", rfc3339(unix_ms()),
                    word_of(level), json_quote(program_name), json_quote(message));
    for (const auto& [name, value] : fields) {
        line += fmt::format(",{}:{}", json_quote(name), json_quote(value));
    }
    line += "}\n";
    std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace cloister
