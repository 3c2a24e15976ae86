#include "faces/rest/conditions.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

namespace cloister::rest {
namespace {

std::string_view value_of(const http::Headers& headers, std::string_view name) {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

std::string_view trimmed(std::string_view text) {
    while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
    while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
    return text;
}

enum class Weak { Equal, Different };

// Whether a list of etags has this one, or is "*".
bool lists(std::string_view list, std::string_view etag, Weak weak) {
    while (!list.empty()) {
        std::string_view one = trimmed(list.substr(0, list.find(',')));
        list.remove_prefix(std::min(list.size(), list.find(',')));
        if (!list.empty()) list.remove_prefix(1);
        if (one == "*") return true;
        if (one.starts_with("W/")) {
            if (weak == Weak::Different) continue;
            one.remove_prefix(2);
        }
        if (one == fmt::format("\"{}\"", etag)) return true;
    }
    return false;
}

// File times are finer than those of HTTP.
bool modified_since(std::string_view header, const Version& version, bool otherwise) {
    const auto since = parse_http_date(header);
    return since ? version.modified_ms / 1000 > *since / 1000 : otherwise;
}

}  // namespace

Verdict judge(const http::Headers& headers, const Version& version) {
    const std::string_view match = value_of(headers, "If-Match");
    if (!match.empty() && !lists(match, version.etag, Weak::Different)) return Verdict::Failed;
    const std::string_view unmodified = value_of(headers, "If-Unmodified-Since");
    if (match.empty() && !unmodified.empty() && modified_since(unmodified, version, false))
        return Verdict::Failed;
    const std::string_view none = value_of(headers, "If-None-Match");
    if (!none.empty())
        return lists(none, version.etag, Weak::Equal) ? Verdict::NotModified : Verdict::Send;
    const std::string_view since = value_of(headers, "If-Modified-Since");
    if (!since.empty() && !modified_since(since, version, true)) return Verdict::NotModified;
    return Verdict::Send;
}

bool range_holds(const http::Headers& headers, const Version& version) {
    const std::string_view condition = trimmed(value_of(headers, "If-Range"));
    if (condition.empty()) return true;
    if (condition.starts_with('"')) return lists(condition, version.etag, Weak::Different);
    return parse_http_date(condition) && !modified_since(condition, version, true);
}

std::string first_etag(std::string_view header) {
    std::string_view one = trimmed(header.substr(0, header.find(',')));
    if (one.size() >= 2 && one.starts_with('"') && one.ends_with('"')) {
        one.remove_prefix(1);
        one.remove_suffix(1);
    }
    return std::string(one);
}

std::string http_date(int64_t ms) {
    return fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(static_cast<time_t>(ms / 1000)));
}

std::optional<int64_t> parse_http_date(std::string_view text) {
    std::tm time{};
    const std::string whole(text);
    const char* end = ::strptime(whole.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &time);
    if (end == nullptr || *end != '\0') return std::nullopt;
    return int64_t{::timegm(&time)} * 1000;
}

}  // namespace cloister::rest
