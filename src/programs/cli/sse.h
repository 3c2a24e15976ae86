// Server-sent events, read from the pieces of a stream.
//
//     SseParser parser;
//     for (SseEvent& event : TRY(parser.feed(piece))) …
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cloister::cli {

struct SseEvent {
    std::string id, type, data;
};

class SseParser {
  public:
    // The events that are whole now. TooLarge if one grows beyond any display that a run may show.
    Result<std::vector<SseEvent>> feed(std::string_view piece);

  private:
    void take_line(std::string_view line, std::vector<SseEvent>& whole);

    std::string buffer_;
    SseEvent current_;
    bool has_data_ = false;
};

}  // namespace cloister::cli
