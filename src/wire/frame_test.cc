#include "wire/frame.h"

#include <gtest/gtest.h>

namespace cloister {
namespace {

TEST(Frame, ComesOutAsItWentInWhateverTheChunks) {
    std::string bytes;
    append_frame(bytes, FrameKind::Json, R"({"op":"hello"})");
    append_frame(bytes, FrameKind::Stdout, std::string(1000, 'x'));
    append_frame(bytes, FrameKind::Stdin, "");
    FrameDecoder decoder;
    std::vector<Frame> frames;
    for (char byte : bytes) {
        decoder.feed({&byte, 1});
        while (auto frame = decoder.next().value()) frames.push_back(*frame);
    }
    ASSERT_EQ(frames.size(), 3U);
    EXPECT_EQ(frames[0].payload, R"({"op":"hello"})");
    EXPECT_EQ(frames[1].kind, FrameKind::Stdout);
    EXPECT_EQ(frames[1].payload.size(), 1000U);
    EXPECT_TRUE(frames[2].payload.empty());
    EXPECT_EQ(decoder.buffered(), 0U);
}

TEST(Frame, RefusesWhatNoSenderOfOursWrites) {
    FrameDecoder too_long(10);
    too_long.feed(std::string("\x0C\x00\x00\x00\x01", 5));
    EXPECT_FALSE(too_long.next());
    FrameDecoder empty;
    empty.feed(std::string("\x00\x00\x00\x00\x01", 5));
    EXPECT_FALSE(empty.next());
    FrameDecoder unknown;
    unknown.feed(std::string("\x01\x00\x00\x00\x09", 5));
    EXPECT_FALSE(unknown.next());
}

}  // namespace
}  // namespace cloister
