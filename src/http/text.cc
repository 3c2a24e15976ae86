// The parts of Request that are only about text.
#include <algorithm>

#include "http/server.h"

namespace cloister::http {
namespace {

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const char small = lower(c);
    return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

}  // namespace

bool CaseLess::operator()(std::string_view a, std::string_view b) const {
    return std::ranges::lexicographical_compare(a, b, {}, lower, lower);
}

std::string_view Request::header(std::string_view name) const {
    const auto found = headers().find(name);
    return found == headers().end() ? std::string_view() : std::string_view(found->second);
}

bool has_word(std::string_view list, std::string_view word) {
    while (!list.empty()) {
        std::string_view entry = list.substr(0, list.find(','));
        list.remove_prefix(std::min(list.size(), entry.size() + 1));
        while (entry.starts_with(' ')) entry.remove_prefix(1);
        while (entry.ends_with(' ')) entry.remove_suffix(1);
        if (std::ranges::equal(entry, word, {}, lower, lower)) return true;
    }
    return false;
}

bool wants_websocket(const Request& request) {
    return has_word(request.header("Upgrade"), "websocket");
}

std::optional<std::string> percent_decode(std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        char c = text[i];
        if (c == '%') {
            if (i + 2 >= text.size()) return std::nullopt;
            const int high = hex_digit(text[i + 1]);
            const int low = hex_digit(text[i + 2]);
            if (high < 0 || low < 0) return std::nullopt;
            c = static_cast<char>(high * 16 + low);
            i += 2;
        }
        if (c == '\0') return std::nullopt;
        out += c;
    }
    return out;
}

std::optional<std::string> query_value(std::string_view query, std::string_view name) {
    while (!query.empty()) {
        const std::string_view pair = query.substr(0, query.find('&'));
        query.remove_prefix(std::min(query.size(), pair.size() + 1));
        const size_t equals = std::min(pair.find('='), pair.size());
        if (percent_decode(pair.substr(0, equals)) != name) continue;
        std::string value(pair.substr(std::min(equals + 1, pair.size())));
        std::ranges::replace(value, '+', ' ');  // as HTML forms write a space
        return percent_decode(value);
    }
    return std::nullopt;
}

}  // namespace cloister::http
