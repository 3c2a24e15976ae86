#include "egress/host_name.h"

#include <algorithm>

namespace cloister::egress {
namespace {

Error not_a_name(std::string reason) {
    return make_error(ErrorKind::InvalidArgument, std::move(reason));
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_lower(char c) {
    return c >= 'a' && c <= 'z';
}

// "1", "0x7f": what inet_aton would read.
bool looks_numeric(std::string_view label) {
    const bool hex = label.starts_with("0x");
    if (hex) label.remove_prefix(2);
    return std::ranges::all_of(
        label, [hex](char c) { return is_digit(c) || (hex && c >= 'a' && c <= 'f'); });
}

Result<void> check_label(std::string_view label) {
    if (label.empty()) return not_a_name("it has an empty label");
    if (label.size() > kLabelMax) return not_a_name("a label of it is longer than 63 characters");
    if (label.front() == '-' || label.back() == '-')
        return not_a_name("a label of it begins or ends with a hyphen");
    return {};
}

Result<void> check_labels(std::string_view name) {
    for (;;) {
        const size_t dot = name.find('.');
        TRY_OK(check_label(name.substr(0, dot)));
        if (dot != std::string_view::npos) {
            name.remove_prefix(dot + 1);
            continue;
        }
        if (looks_numeric(name)) return not_a_name("it ends like a number and is no address");
        return {};
    }
}

Result<char> canonical_character(char c) {
    if (c >= 'A' && c <= 'Z') return static_cast<char>(c | 0x20);
    if (is_lower(c) || is_digit(c) || c == '-' || c == '.') return c;
    if (static_cast<unsigned char>(c) >= 0x80)
        return not_a_name("it is not ASCII: write it in its xn-- form");
    return not_a_name("a host name has only letters, digits, hyphens and dots");
}

}  // namespace

Result<std::string> canonical_name(std::string_view text) {
    if (text.ends_with('.')) text.remove_suffix(1);
    if (text.size() > kNameMax) return not_a_name("it is longer than 253 characters");
    std::string name;
    name.reserve(text.size());
    for (const char c : text) name += TRY(canonical_character(c));
    TRY_OK(check_labels(name));
    return name;
}

Result<Host> parse_host(std::string_view text) {
    std::string_view plain = text;
    if (plain.ends_with('.')) plain.remove_suffix(1);
    if (const auto address = parse_address(plain)) return Host(*address);
    return Host(TRY(canonical_name(text)));
}

}  // namespace cloister::egress
