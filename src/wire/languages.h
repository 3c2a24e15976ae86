// Languages: the interpreters of the built-in templates (templates.h says which has which), under
// the names that all our programs use, and the files that they are for. Beside them, `jupyter:NAME`
// is the language of any Jupyter kernel that a template has installed.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/limits.h"

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
    Language{"r", {".r", ".R"}},
    Language{"java", {".java", ".jsh"}},
};

inline constexpr std::string_view kJupyterPrefix = "jupyter:";

inline bool is_language(std::string_view name) {
    return std::ranges::find(kLanguages, name, &Language::name) != kLanguages.end();
}

// The kernelspec of `jupyter:NAME`; nothing if `language` is not of that form. A name of Jupyter's:
// letters, digits, '.', '_' and '-'.
inline std::optional<std::string_view> find_kernelspec(std::string_view language) {
    if (!language.starts_with(kJupyterPrefix) || language.size() > limits::kLanguageMax) return {};
    const std::string_view name = language.substr(kJupyterPrefix.size());
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '.' || c == '_' || c == '-';
    };
    if (name.empty() || !std::ranges::all_of(name, plain)) return {};
    return name;
}

// "`python`, `javascript`, …", for messages.
inline std::string language_names() {
    std::string names;
    for (const Language& language : kLanguages) {
        names += names.empty() ? "`" : ", `";
        names.append(language.name).append("`");
    }
    return names + ", and `jupyter:NAME` for a Jupyter kernel that is installed";
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
