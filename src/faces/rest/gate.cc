#include "faces/rest/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace cloister::rest {
namespace {

constexpr std::array<std::string_view, 3> kLoopback = {"localhost", "127.0.0.1", "[::1]"};
constexpr std::string_view kBearer = "bearer ";

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b, {}, lower, lower);
}

std::string_view first(const http::Headers& headers, std::string_view name) {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

// "http://host:port" → "host:port"; other schemes are pages of nobody we know.
std::string_view authority_of(std::string_view origin) {
    for (const std::string_view scheme : {"http://", "https://"}) {
        if (origin.starts_with(scheme)) return origin.substr(scheme.size());
    }
    return {};
}

}  // namespace

std::string_view without_port(std::string_view authority) {
    const size_t bracket = authority.rfind(']');
    const size_t colon = authority.rfind(':');
    const bool has_port =
        colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
    return has_port ? authority.substr(0, colon) : authority;
}

bool Gate::known(std::string_view host) const {
    const auto same = [&](std::string_view name) { return equal_ignoring_case(name, host); };
    return std::ranges::any_of(kLoopback, same) || std::ranges::any_of(names_, same);
}

Result<void> Gate::check(const http::Headers& headers) const {
    const std::string_view host = first(headers, "Host");
    if (!known(without_port(host))) {
        return make_error(
            ErrorKind::PermissionDenied,
            "this service is not known under that `Host`: use 127.0.0.1 or localhost, or "
            "start cloisterd with --name NAME");
    }
    const std::string_view origin = first(headers, "Origin");
    if (!origin.empty() && !equal_ignoring_case(authority_of(origin), host)) {
        return make_error(
            ErrorKind::PermissionDenied,
            "pages of another `Origin` may not call this service: call it from your own server");
    }
    return {};
}

std::string_view key_in(const http::Headers& headers) {
    const std::string_view authorization = first(headers, "Authorization");
    if (equal_ignoring_case(authorization.substr(0, kBearer.size()), kBearer)) {
        return authorization.substr(kBearer.size());
    }
    return authorization.empty() ? first(headers, "X-API-Key") : std::string_view();
}

}  // namespace cloister::rest
