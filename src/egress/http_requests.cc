#include "egress/http_requests.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/number.h"

namespace cloister::egress {
namespace {

constexpr size_t kMethodMax = 24;
constexpr size_t kLineMax = 4096;  // of a chunk or a trailer
constexpr std::string_view kHeadEnd = "\r\n\r\n";

Error malformed(std::string why) {
    return make_error(ErrorKind::InvalidArgument, "not an HTTP request: " + why);
}

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
}

bool equal_without_case(std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b, {}, lower, lower);
}

bool is_token(char c) {
    constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
    const char small = lower(c);
    return (small >= 'a' && small <= 'z') || (c >= '0' && c <= '9') ||
           kOthers.find(c) != std::string_view::npos;
}

std::string_view trimmed(std::string_view text) {
    const auto blank = [](char c) { return c == ' ' || c == '\t'; };
    while (!text.empty() && blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && blank(text.back())) text.remove_suffix(1);
    return text;
}

struct HostPort {
    Host host;
    std::optional<uint16_t> port;
    bool operator==(const HostPort&) const = default;
};

// "name", "name:80", "[::1]:80".
Result<HostPort> parse_host_port(std::string_view text) {
    HostPort out;
    const size_t bracket = text.rfind(']');
    const size_t colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
    if (colon != std::string_view::npos) {
        out.port = whole_number<uint16_t>(text.substr(colon + 1));
        if (!out.port) return malformed("a port that is none");
        text = text.substr(0, colon);
    }
    out.host = TRY(parse_host(text));
    return out;
}

// What the lines of a head have said so far.
struct Seen {
    std::optional<HostPort> host;
    std::optional<uint64_t> length;
    bool chunked = false;
    bool upgrade = false;
};

Result<void> take_field(std::string_view name, std::string_view value, Seen& seen) {
    if (equal_without_case(name, "host")) {
        if (seen.host) return malformed("two Host fields");
        seen.host = TRY(parse_host_port(value));
    } else if (equal_without_case(name, "content-length")) {
        const auto length = whole_number<uint64_t>(value);
        if (!length || seen.length) return malformed("a length that is none, or two");
        seen.length = *length;
    } else if (equal_without_case(name, "transfer-encoding")) {
        if (seen.chunked || !equal_without_case(value, "chunked"))
            return malformed("a transfer coding other than chunked");
        seen.chunked = true;
    } else if (equal_without_case(name, "upgrade")) {
        seen.upgrade = true;
    }
    return {};
}

bool is_clean(std::string_view text) {
    return std::ranges::none_of(text, [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return (byte < 0x20 && c != '\t') || byte == 0x7f;
    });
}

Result<void> take_line(std::string_view line, Seen& seen) {
    const size_t colon = line.find(':');
    if (colon == 0 || colon == std::string_view::npos) return malformed("a line without a name");
    const std::string_view name = line.substr(0, colon);
    if (!std::ranges::all_of(name, is_token))
        return malformed("a field name with other characters");
    if (!is_clean(line)) return malformed("a control character");
    return take_field(name, trimmed(line.substr(colon + 1)), seen);
}

// The host in "GET http://host/ HTTP/1.1", which counts before the Host field.
Result<std::optional<HostPort>> host_of_target(std::string_view target) {
    if (target.starts_with('/') || target == "*") return std::optional<HostPort>();
    constexpr std::string_view kScheme = "http://";
    if (target.size() < kScheme.size() ||
        !equal_without_case(target.substr(0, kScheme.size()), kScheme))
        return malformed("a target that is no path");
    const std::string_view rest = target.substr(kScheme.size());
    return std::optional(TRY(parse_host_port(rest.substr(0, rest.find_first_of("/?")))));
}

Result<std::optional<HostPort>> take_request_line(std::string_view line) {
    const size_t first = line.find(' ');
    const size_t second = line.rfind(' ');
    if (first == std::string_view::npos || second == first) return malformed("its first line");
    const std::string_view method = line.substr(0, first);
    const std::string_view target = line.substr(first + 1, second - first - 1);
    const std::string_view version = line.substr(second + 1);
    if (version != "HTTP/1.1" && version != "HTTP/1.0") return malformed("its version");
    const bool good = std::ranges::all_of(method, is_token) && !method.empty() && !target.empty() &&
                      target.find(' ') == std::string_view::npos && is_clean(target);
    if (!good) return malformed("its first line");
    if (method == "CONNECT") return malformed("CONNECT is not carried");
    return host_of_target(target);
}

Result<HttpHead> settle(const Seen& seen, const std::optional<HostPort>& target) {
    if (seen.chunked && seen.length) return malformed("both a length and chunks");
    if (!seen.host) return malformed("no Host field");
    if (target && target->host != seen.host->host)
        return malformed("another host in its target than in its Host field");
    return HttpHead{.host = seen.host->host,
                    .port = seen.host->port,
                    .upgrade = seen.upgrade,
                    .chunked = seen.chunked,
                    .length = seen.length.value_or(0)};
}

std::optional<uint64_t> chunk_size(std::string_view line) {
    const std::string_view digits = trimmed(line.substr(0, line.find(';')));
    constexpr size_t kDigitsMax = 15;
    if (digits.empty() || digits.size() > kDigitsMax) return std::nullopt;
    uint64_t value = 0;
    for (const char c : digits) {
        const char small = lower(c);
        if (c >= '0' && c <= '9') {
            value = value << 4 | static_cast<uint64_t>(c - '0');
        } else if (small >= 'a' && small <= 'f') {
            value = value << 4 | static_cast<uint64_t>(small - 'a' + 10);
        } else {
            return std::nullopt;
        }
    }
    return value;
}

}  // namespace

LooksLike looks_like_http(std::string_view bytes) {
    for (size_t i = 0; i < std::min(bytes.size(), kMethodMax); ++i) {
        if (bytes[i] == ' ') return i >= 3 ? LooksLike::Yes : LooksLike::No;
        if (bytes[i] < 'A' || bytes[i] > 'Z') return LooksLike::No;
    }
    return bytes.size() < kMethodMax ? LooksLike::Maybe : LooksLike::No;
}

Result<HttpHead> parse_http_head(std::string_view text) {
    if (!text.ends_with(kHeadEnd)) return malformed("its end");
    text.remove_suffix(2);
    Seen seen;
    std::optional<HostPort> target;
    for (bool first = true; !text.empty(); first = false) {
        const size_t end = text.find("\r\n");
        const std::string_view line = text.substr(0, end);
        if (line.find_first_of("\r\n") != std::string_view::npos)
            return malformed("a bare end of line");
        text.remove_prefix(end + 2);
        if (first) {
            target = TRY(take_request_line(line));
        } else {
            TRY_OK(take_line(line, seen));
        }
    }
    return settle(seen, target);
}

Result<HttpRequests::Step> HttpRequests::next(std::string_view bytes) {
    switch (at_) {
        case At::Head:
            return next_head(bytes);
        case At::Body:
        case At::ChunkData: {
            const auto used = static_cast<size_t>(std::min<uint64_t>(left_, bytes.size()));
            left_ -= used;
            if (left_ == 0) at_ = at_ == At::Body ? At::Head : At::ChunkEnd;
            return Step{.kind = Step::Kind::Body, .used = used, .forward = bytes.substr(0, used)};
        }
        case At::ChunkSize:
        case At::ChunkEnd:
        case At::Trailer:
            break;
    }
    return next_line(bytes);
}

Result<HttpRequests::Step> HttpRequests::next_head(std::string_view bytes) {
    const size_t before = buffer_.size();
    buffer_ += bytes.substr(0, kHttpHeadMax + 1 - std::min(before, kHttpHeadMax));
    const size_t from = before < kHeadEnd.size() ? 0 : before - kHeadEnd.size() + 1;
    const size_t end = buffer_.find(kHeadEnd, from);
    if (end == std::string::npos) {
        if (buffer_.size() > kHttpHeadMax) return malformed("its head is too long");
        return Step{.used = buffer_.size() - before};
    }
    const size_t used = end + kHeadEnd.size() - before;
    buffer_.resize(end + kHeadEnd.size());
    head_ = TRY(parse_http_head(buffer_));
    whole_ = std::exchange(buffer_, {});
    left_ = head_.length;
    if (left_ > 0) at_ = At::Body;
    if (head_.chunked) at_ = At::ChunkSize;
    return Step{.kind = Step::Kind::Head, .used = used, .forward = whole_};
}

// A line of the chunked coding: it is read for its end, and passed on as it is.
Result<HttpRequests::Step> HttpRequests::next_line(std::string_view bytes) {
    const size_t end = bytes.find('\n');
    const size_t used = end == std::string_view::npos ? bytes.size() : end + 1;
    if (buffer_.size() + used > kLineMax) return malformed("a line of its body is too long");
    buffer_ += bytes.substr(0, used);
    if (end != std::string_view::npos) TRY_OK(end_line());
    return Step{.kind = Step::Kind::Body, .used = used, .forward = bytes.substr(0, used)};
}

Result<void> HttpRequests::end_line() {
    const std::string line = std::exchange(buffer_, {});
    if (!line.ends_with("\r\n")) return malformed("a bare end of line");
    const std::string_view text = std::string_view(line).substr(0, line.size() - 2);
    if (at_ == At::ChunkEnd) {
        if (!text.empty()) return malformed("a chunk longer than it said");
        at_ = At::ChunkSize;
    } else if (at_ == At::Trailer) {
        if (text.empty()) at_ = At::Head;
    } else {
        const auto size = chunk_size(text);
        if (!size) return malformed("the size of a chunk");
        left_ = *size;
        at_ = left_ == 0 ? At::Trailer : At::ChunkData;
    }
    return {};
}

}  // namespace cloister::egress
