#include "programs/cli/sse.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace cloister::cli {
namespace {

constexpr std::string_view kStream =
    ": heartbeat\n\nid: 1\nevent: stdout\ndata: "
    "{\"text\":\"a\"}\n\nid:2\r\nevent:ended\r\ndata:x\r\ndata:y\r\n\r\n"
    "id: 3\ndata: never finished\n";

void expect_stream(const std::vector<SseEvent>& events) {
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events[0].id, "1");
    EXPECT_EQ(events[0].type, "stdout");
    EXPECT_EQ(events[0].data, "{\"text\":\"a\"}");
    EXPECT_EQ(events[1].type, "ended");
    EXPECT_EQ(events[1].data, "x\ny");
}

TEST(Sse, ReadsWholeEvents) {
    SseParser parser;
    expect_stream(parser.feed(kStream).value());
}

TEST(Sse, ReadsEventsThatComeInPieces) {
    for (size_t size : {1U, 2U, 7U}) {
        SseParser parser;
        std::vector<SseEvent> events;
        for (size_t at = 0; at < kStream.size(); at += size) {
            for (SseEvent& event : parser.feed(kStream.substr(at, size)).value())
                events.push_back(event);
        }
        expect_stream(events);
    }
}

TEST(Sse, BoundsAnEvent) {
    SseParser parser;
    const std::string piece(16 * limits::kMiB, 'x');
    Result<std::vector<SseEvent>> fed;
    for (int i = 0; i < 14 && fed; ++i) fed = parser.feed(piece);
    EXPECT_FALSE(fed);
}

}  // namespace
}  // namespace cloister::cli
