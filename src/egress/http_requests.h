// Watches what a client sends over one plain HTTP/1 connection: finds the head of each request and
// the host that it is for. Strict where two readers could differ: what it cannot read without doubt
// is refused. Sans I/O.
//
//     while (!bytes.empty()) {
//         auto step = TRY(requests.next(bytes));     // may be one half of a head
//         bytes.remove_prefix(step.used);
//         if (step.kind == Step::Head) judge(step.head.host);
//         forward(step.forward);
//     }
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "egress/host_name.h"

namespace cloister::egress {

inline constexpr size_t kHttpHeadMax = 64 * 1024;

struct HttpHead {
    Host host;
    std::optional<uint16_t> port;
    bool upgrade = false;  // asks for another protocol: what follows may be anything
    bool chunked = false;
    uint64_t length = 0;
};

// Whether bytes may be the beginning of an HTTP/1 request: the start of "METHOD ".
enum class LooksLike : uint8_t { No, Maybe, Yes };
LooksLike looks_like_http(std::string_view bytes);
// A whole head, with the empty line at its end.
Result<HttpHead> parse_http_head(std::string_view text);

class HttpRequests {
  public:
    struct Step {
        enum class Kind : uint8_t { Nothing, Head, Body } kind = Kind::Nothing;
        size_t used = 0;           // of the bytes that were given
        std::string_view forward;  // until the next call
    };
    Result<Step> next(std::string_view bytes);
    const HttpHead& head() const { return head_; }  // of the request that was seen last

  private:
    enum class At : uint8_t { Head, Body, ChunkSize, ChunkData, ChunkEnd, Trailer };
    Result<Step> next_head(std::string_view bytes);
    Result<Step> next_line(std::string_view bytes);
    Result<void> end_line();

    At at_ = At::Head;
    std::string buffer_;  // of a head or a chunk's line that is not whole
    std::string whole_;   // the head that was handed out
    uint64_t left_ = 0;   // of the body or the chunk
    HttpHead head_;
};

}  // namespace cloister::egress
