// File name patterns: `*` and `?` stay within a part of a path, `**/` is any number of parts,
// `[a-z]` and `[!a-z]` are sets, `\` takes the meaning of what follows. Time: linear in most cases,
// the product of both lengths at worst.
#pragma once

#include <string_view>

namespace cloister {

// A pattern without "/" is about the last part of `path`, any other about the whole
// ("src/**/*.py").
bool matches_glob(std::string_view pattern, std::string_view path);

}  // namespace cloister
