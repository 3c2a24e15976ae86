// Conditional requests (RFC 9110 §13): whether a client's copy is current, by etag or by time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/server.h"

namespace cloister::rest {

struct Version {
    std::string etag;  // without quotes
    int64_t modified_ms = 0;
};

enum class Verdict { Send, NotModified, Failed };
// What a GET with these headers is to be answered.
Verdict judge(const http::Headers& headers, const Version& version);
// Whether a `Range` holds for this version (If-Range).
bool range_holds(const http::Headers& headers, const Version& version);

// "\"abc\"" → "abc", "*" → "*"; the first of a list. Empty if there is none.
std::string first_etag(std::string_view header);
// "Sun, 06 Nov 1994 08:49:37 GMT"
std::string http_date(int64_t ms);
std::optional<int64_t> parse_http_date(std::string_view text);

}  // namespace cloister::rest
