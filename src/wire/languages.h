// Languages: the interpreters of the base image, under the names that all our programs use, and the
// files that they are for.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace cloister {

struct Language {
    std::string_view name;
    std::array<std::string_view, 3> endings;  // of its files; empty ones mean nothing
};

inline constexpr std::array kLanguages{
    Language{"python", {".py"}},
    Language{"javascript", {".js", ".mjs", ".cjs"}},
    Language{"typescript", {".ts", ".mts", ".cts"}},
    Language{"bash", {".sh", ".bash"}},
};

inline bool is_language(std::string_view name) {
    return std::ranges::find(kLanguages, name, &Language::name) != kLanguages.end();
}

// "`python`, `javascript`, …", for messages.
inline std::string language_names() {
    std::string names;
    for (const Language& language : kLanguages) {
        names += names.empty() ? "`" : ", `";
        names.append(language.name).append("`");
    }
    return names;
}

// The language that a file's name tells of.
inline std::optional<std::string_view> find_language_of(std::string_view file) {
    for (const Language& language : kLanguages) {
        for (const std::string_view ending : language.endings) {
            if (!ending.empty() && file.ends_with(ending)) return language.name;
        }
    }
    return std::nullopt;
}

}  // namespace cloister
