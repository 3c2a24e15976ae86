// AnswerParser: the bytes of one HTTP/1.1 answer, as a client gets them, without any I/O.
//
//     AnswerParser parser;
//     while (!TRY(parser.head())) parser.feed(…);       // or parser.end_of_input()
//     for (;;) { bytes = TRY(parser.body()); … if (bytes.empty()) { if (parser.done()) break; feed
//     } }
//
// Internal to this room.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/server.h"

namespace cloister::http {

struct AnswerHead {
    int status = 0;
    Headers headers;
};

class AnswerParser {
  public:
    AnswerParser();
    ~AnswerParser();
    AnswerParser(const AnswerParser&) = delete;

    void feed(std::string_view bytes);
    void end_of_input();
    // Nothing until it is whole. Unavailable for what is no HTTP/1.1, here and below.
    Result<std::optional<AnswerHead>> head();
    // What is at hand of the body, in pieces of limits::kStreamChunk; empty: feed more, or done().
    Result<std::string> body();
    bool done() const;
    // Goes on with the next answer on the same connection.
    void start_again();
    // The bytes behind what was parsed: of another protocol, or of the next answer.
    std::string take_rest();

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace cloister::http
