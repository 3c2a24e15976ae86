#include "wire/glob.h"

#include <cstddef>
#include <optional>

namespace cloister {
namespace {

// What a set, whose "[" is at `at`, says about `c`; moves `at` behind it. nullopt: it has no end.
std::optional<bool> in_set(std::string_view pattern, size_t& at, char c) {
    size_t i = at + 1;
    const bool inverted = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
    if (inverted) ++i;
    bool found = false;
    for (bool first = true; i < pattern.size() && (first || pattern[i] != ']'); first = false) {
        const auto low = static_cast<unsigned char>(pattern[i]);
        auto high = low;
        if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
            high = static_cast<unsigned char>(pattern[i + 2]);
            i += 2;
        }
        const auto byte = static_cast<unsigned char>(c);
        found = found || (low <= byte && byte <= high);
        ++i;
    }
    if (i >= pattern.size()) return std::nullopt;
    at = i + 1;
    return found != inverted && c != '/';
}

// Whether the one character at `at` of the pattern takes `c`; moves `at` behind it.
bool takes(std::string_view pattern, size_t& at, char c) {
    if (at >= pattern.size()) return false;
    if (pattern[at] == '[') {
        if (const auto found = in_set(pattern, at, c)) return *found;
    }
    if (pattern[at] == '?' && c != '/') return ++at, true;
    if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
    return pattern[at++] == c;
}

// Where to go on when it does not fit: what a star has taken gets longer.
struct Retreat {
    size_t path = std::string_view::npos, pattern = 0;
    bool open() const { return path != std::string_view::npos; }
};

bool matches_all(std::string_view pattern, std::string_view path) {
    Retreat star, parts;
    size_t i = 0, j = 0;
    while (i < path.size()) {
        if (j < pattern.size() && pattern[j] == '*') {
            if (pattern.substr(j, 3) == "**/") {
                j += 3;
                parts = {.path = i, .pattern = j};
                star = {};
                continue;
            }
            if (pattern.substr(j) == "**") return true;
            star = {.path = i, .pattern = ++j};
            continue;
        }
        size_t next = j;
        if (takes(pattern, next, path[i])) {
            j = next;
            ++i;
            continue;
        }
        if (star.open() && path[star.path] != '/') {
            i = ++star.path;
            j = star.pattern;
            continue;
        }
        if (!parts.open()) return false;
        const size_t slash = path.find('/', parts.path);
        if (slash == std::string_view::npos) return false;
        i = parts.path = slash + 1;
        j = parts.pattern;
        star = {};
    }
    while (j < pattern.size() && pattern[j] == '*') ++j;
    return j == pattern.size();
}

}  // namespace

bool matches_glob(std::string_view pattern, std::string_view path) {
    if (pattern.find('/') == std::string_view::npos) path.remove_prefix(path.rfind('/') + 1);
    return matches_all(pattern, path);
}

}  // namespace cloister
