// What a server in a sandbox answers: however its bytes are cut into reads, it is the same head and
// body, or an error, which may come before or after the head. The first byte of the input says how
// they are cut.
#include "http/answer_parser.h"

#include <algorithm>
#include <string>

#include "fuzz.h"

namespace {

using cloister::http::AnswerHead;
using cloister::http::AnswerParser;

struct Parsed {
    int status = 0;
    size_t headers = 0;
    std::string body;
    bool failed = false, done = false;
};

// Takes what can be taken now.
void take(AnswerParser& parser, Parsed& out) {
    if (out.failed) return;
    if (out.status == 0) {
        const auto head = parser.head();
        out.failed = !head;
        if (!head || !*head) return;
        out.status = (*head)->status;
        out.headers = (*head)->headers.size();
    }
    for (;;) {
        const auto piece = parser.body();
        out.failed = !piece;
        if (!piece || piece->empty()) break;
        out.body += *piece;
    }
    out.done = parser.done();
}

Parsed parse(std::string_view stream, size_t step) {
    Parsed out;
    AnswerParser parser;
    while (!stream.empty() && !out.failed && !out.done) {
        parser.feed(stream.substr(0, step));
        stream.remove_prefix(std::min(step, stream.size()));
        take(parser, out);
    }
    parser.end_of_input();
    take(parser, out);
    return out;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    const std::string_view stream = cloister::fuzz::text_of(data + 1, size - 1);
    const Parsed whole = parse(stream, std::max<size_t>(stream.size(), 1));
    const Parsed pieces = parse(stream, data[0] + 1U);
    if (!whole.failed && !pieces.failed) {
        EXPECT(whole.status == pieces.status);
        EXPECT(whole.headers == pieces.headers);
        EXPECT(whole.body == pieces.body);
    }
    EXPECT(whole.body.size() <= stream.size());
    return 0;
}
