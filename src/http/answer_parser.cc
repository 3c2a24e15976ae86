#include "http/answer_parser.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <utility>

#include "base/limits.h"

namespace cloister::http {

namespace beast_http = boost::beast::http;
using Failure = beast_http::error;

struct AnswerParser::State {
    State() {
        parser.body_limit(boost::none);
        parser.header_limit(limits::kHttpHeaderMax);
        parser.eager(true);
    }
    beast_http::response_parser<beast_http::buffer_body> parser;
    std::string input;
    bool ended = false;

    // Parses what is at hand, with `out` for the body; answers how much of it was filled.
    Result<size_t> parse(std::string& out);
};

Result<size_t> AnswerParser::State::parse(std::string& out) {
    auto& body = parser.get().body();
    body.data = out.data();
    body.size = out.size();
    boost::beast::error_code failure;
    if (!input.empty()) input.erase(0, parser.put(boost::asio::buffer(input), failure));
    if (ended && !parser.got_some()) {
        return make_error(ErrorKind::Unavailable,
                          "the service closed the connection without an answer");
    }
    if (ended && (!failure || failure == Failure::need_more) && !parser.is_done()) {
        failure = {};
        parser.put_eof(failure);
    }
    if (failure == Failure::partial_message || failure == Failure::end_of_stream) {
        return make_error(ErrorKind::Unavailable,
                          "the service closed the connection in the middle of its answer");
    }
    if (failure && failure != Failure::need_more && failure != Failure::need_buffer) {
        return make_error(ErrorKind::Unavailable,
                          "what answers is no HTTP/1.1 server: " + failure.message());
    }
    return out.size() - body.size;
}

AnswerParser::AnswerParser() : state_(std::make_unique<State>()) {}

AnswerParser::~AnswerParser() = default;

void AnswerParser::feed(std::string_view bytes) {
    state_->input += bytes;
}

void AnswerParser::end_of_input() {
    state_->ended = true;
}

Result<std::optional<AnswerHead>> AnswerParser::head() {
    std::string no_body;
    if (!state_->parser.is_header_done()) TRY(state_->parse(no_body));
    if (!state_->parser.is_header_done()) return std::optional<AnswerHead>();
    const auto& message = state_->parser.get();
    AnswerHead out{.status = static_cast<int>(message.result_int()), .headers = {}};
    for (const auto& field : message) out.headers.emplace(field.name_string(), field.value());
    return std::optional<AnswerHead>(std::move(out));
}

Result<std::string> AnswerParser::body() {
    std::string out(limits::kStreamChunk, '\0');
    size_t got = 0;
    if (!state_->parser.is_done()) got = TRY(state_->parse(out));
    out.resize(got);
    return out;
}

bool AnswerParser::done() const {
    return state_->parser.is_done();
}

void AnswerParser::start_again() {
    std::string rest = take_rest();
    const bool ended = state_->ended;
    state_ = std::make_unique<State>();
    state_->input = std::move(rest);
    state_->ended = ended;
}

std::string AnswerParser::take_rest() {
    return std::exchange(state_->input, {});
}

}  // namespace cloister::http
