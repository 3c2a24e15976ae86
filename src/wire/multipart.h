// multipart/form-data (RFC 7578): a body with several parts, cut into them as it comes. Sans I/O.
//
//     auto decoder = TRY(MultipartDecoder::create(content_type));
//     decoder.feed(bytes);
//     while (auto event = TRY(decoder.next())) …   // a part's head, pieces of its content, its end
//     if (!decoder.ended()) …                      // feed more; at the end of the body: it broke
//     off
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"

namespace cloister {

struct PartHead {
    std::string name;
    std::optional<std::string> filename;  // as it stands there, with directories
};
struct PartContent {
    std::string bytes;
};
struct PartEnd {};
using MultipartEvent = std::variant<PartHead, PartContent, PartEnd>;

class MultipartDecoder {
  public:
    // InvalidArgument unless it is multipart/form-data with a boundary.
    static Result<MultipartDecoder> create(std::string_view content_type);

    void feed(std::string_view bytes);
    // nullopt: more bytes are needed, or the end has been reached. InvalidArgument for what is
    // broken, TooLarge for the head of a part over 16 KiB.
    Result<std::optional<MultipartEvent>> next();
    bool ended() const { return state_ == State::End; }

  private:
    enum class State { Preamble, AfterBoundary, Head, ContentBegin, Content, End };
    explicit MultipartDecoder(std::string boundary)
        : delimiter_("\r\n--" + std::move(boundary)), buffer_("\r\n") {}

    std::string_view rest() const { return std::string_view(buffer_).substr(used_); }
    bool preamble();
    Result<bool> after_boundary();
    Result<std::optional<MultipartEvent>> head();
    bool content_begins();
    std::optional<MultipartEvent> content();

    std::string delimiter_;
    std::string buffer_;  // begins as if a line had just ended
    size_t used_ = 0;
    State state_ = State::Preamble;
};

}  // namespace cloister
