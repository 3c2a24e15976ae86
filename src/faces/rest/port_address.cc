#include "faces/rest/port_address.h"

#include <algorithm>

#include "base/ids.h"
#include "base/number.h"
#include "faces/rest/gate.h"

namespace cloister::rest {
namespace {

constexpr std::string_view kOurs = "e2b_";

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return out;
}

}  // namespace

std::optional<uint16_t> port_in(std::string_view text) {
    const auto number = whole_number<uint16_t>(text);
    if (!number || *number == 0 || std::to_string(*number) != text) return std::nullopt;
    return *number;
}

std::optional<PortAddress> port_address_in(std::string_view host, std::string_view domain) {
    if (domain.empty()) return std::nullopt;
    const std::string name = lower(without_port(host)), suffix = "." + lower(domain);
    if (!name.ends_with(suffix)) return std::nullopt;
    const std::string_view label = std::string_view(name).substr(0, name.size() - suffix.size());
    const size_t dash = label.find('-');
    if (dash == std::string_view::npos) return std::nullopt;
    const auto port = port_in(label.substr(0, dash));
    const std::string_view id = label.substr(dash + 1);
    if (!port || !is_id(id)) return std::nullopt;
    return PortAddress{.sandbox_id = std::string(id), .port = *port};
}

std::string_view port_key_in(const http::Headers& headers) {
    const auto own = headers.find("X-API-Key");
    if (own != headers.end() && own->second.starts_with(kOurs)) return own->second;
    const std::string_view key = key_in(headers);
    return key.starts_with(kOurs) ? key : std::string_view();
}

}  // namespace cloister::rest
