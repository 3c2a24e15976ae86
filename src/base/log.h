// Log: one JSON object a line on standard error, for programs (libraries return errors instead).
//
//     log_info("sandbox created", {{"sandbox_id", id}, {"ms", std::to_string(ms)}});
//
// Not thread-safe by line order, but each line is written by one write.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json_text.h"  // json_quote, which most who log need, too

namespace cloister {

enum class LogLevel { Debug, Info, Warn, Error };

using LogFields = std::initializer_list<std::pair<std::string_view, std::string>>;

// Sets the program's name and the lowest level that is written. Call once, in main.
void log_open(std::string_view program, LogLevel lowest);
std::optional<LogLevel> log_level_from(std::string_view word);  // debug, info, warn, error

void log_line(LogLevel level, std::string_view message, LogFields fields = {});
inline void log_debug(std::string_view m, LogFields f = {}) {
    log_line(LogLevel::Debug, m, f);
}
inline void log_info(std::string_view m, LogFields f = {}) {
    log_line(LogLevel::Info, m, f);
}
inline void log_warn(std::string_view m, LogFields f = {}) {
    log_line(LogLevel::Warn, m, f);
}
inline void log_error(std::string_view m, LogFields f = {}) {
    log_line(LogLevel::Error, m, f);
}

}  // namespace cloister
