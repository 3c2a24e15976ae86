// The built-in templates, under the names that all our programs use: the images that images/build
// makes, and the languages that each has.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/result.h"
#include "wire/languages.h"

namespace cloister {

struct BuiltInTemplate {
    std::string_view name;  // also that of its image: NAME-….tar.zst
    std::array<std::string_view, 6> languages;
    std::string_view build;  // the command that makes its image
};

inline constexpr std::array kBuiltInTemplates{
    BuiltInTemplate{.name = "base",
                    .languages = {"python", "javascript", "typescript", "bash"},
                    .build = "sudo ./dev setup"},
    // A layer on top of base.
    BuiltInTemplate{.name = "polyglot",
                    .languages = {"python", "javascript", "typescript", "bash", "r", "java"},
                    .build = "sudo ./dev setup --polyglot"},
};

struct TemplateAlias {
    std::string_view alias, name;
};

// What clients of other services ask for.
inline constexpr std::array kTemplateAliases{
    TemplateAlias{.alias = "code-interpreter-v1", .name = "base"},
};

// Where a template stands in kBuiltInTemplates.
inline std::optional<size_t> find_built_in_template(std::string_view name) {
    const auto alias = std::ranges::find(kTemplateAliases, name, &TemplateAlias::alias);
    if (alias != kTemplateAliases.end()) name = alias->name;
    const auto found = std::ranges::find(kBuiltInTemplates, name, &BuiltInTemplate::name);
    if (found == kBuiltInTemplates.end()) return std::nullopt;
    return static_cast<size_t>(found - kBuiltInTemplates.begin());
}

// "`base`, `polyglot`", for messages.
inline std::string built_in_template_names() {
    std::string names;
    for (const BuiltInTemplate& built_in : kBuiltInTemplates) {
        names += names.empty() ? "`" : ", `";
        names.append(built_in.name).append("`");
    }
    return names;
}

// InvalidArgument, with the names that there are, for another one.
inline Result<size_t> get_built_in_template(std::string_view name) {
    if (const auto found = find_built_in_template(name)) return *found;
    return invalid_field("template", "no template `" + std::string(name) + "`: this service has " +
                                         built_in_template_names());
}

inline bool has_language(const BuiltInTemplate& built_in, std::string_view language) {
    return std::ranges::find(built_in.languages, language) != built_in.languages.end();
}

// The first template that has a language.
inline std::optional<std::string_view> find_template_of(std::string_view language) {
    for (const BuiltInTemplate& built_in : kBuiltInTemplates) {
        if (has_language(built_in, language)) return built_in.name;
    }
    return std::nullopt;
}

}  // namespace cloister
