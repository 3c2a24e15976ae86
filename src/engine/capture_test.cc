#include "engine/capture.h"

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace cloister::engine {
namespace {

TEST(TextStream, ACharacterSplitOverPiecesStaysWhole) {
    const std::string text = "a€𝄞z";
    for (size_t cut = 0; cut <= text.size(); ++cut) {
        TextStream stream;
        std::string all(stream.feed(text.substr(0, cut)));
        EXPECT_TRUE(is_utf8(all));
        const std::string rest = text.substr(cut);
        all += stream.feed(rest);
        EXPECT_EQ(all + std::string(stream.finish()), text) << cut;
    }
}

TEST(TextStream, EveryByteComesOnce) {
    TextStream stream;
    EXPECT_EQ(stream.feed("a\xFFz\xE2\x82"), "a\xFFz");
    EXPECT_EQ(stream.feed("\xE2"), "\xE2\x82");
    EXPECT_EQ(stream.finish(), "\xE2");
    EXPECT_EQ(stream.finish(), "");
}

TEST(Capture, KeepsAllUpToItsBound) {
    Capture capture(400);
    for (int i = 0; i < 4; ++i) capture.append(std::string(100, static_cast<char>('a' + i)));
    EXPECT_EQ(capture.text().size(), 400U);
    EXPECT_EQ(capture.omitted_bytes(), 0U);
    EXPECT_EQ(capture.text().substr(199, 2), "bc");
}

TEST(Capture, BeyondItKeepsHeadAndTailWithTheExactCount) {
    Capture capture(400);
    for (int i = 0; i < 100'000; ++i) capture.append(std::to_string(i) + "\n");
    const std::string text = capture.text();
    EXPECT_LE(text.size(), 400U);
    EXPECT_TRUE(text.starts_with("0\n1\n2\n"));
    EXPECT_TRUE(text.ends_with("99998\n99999\n"));
    const size_t begin = text.find("\n[… ") + 1;
    const size_t end = text.find("…]\n") + std::string("…]\n").size();
    EXPECT_EQ(begin - 1 + text.size() - end + capture.omitted_bytes(), 588'890U);
    EXPECT_NE(text.find(std::to_string(capture.omitted_bytes()) + " bytes"), std::string::npos);
    EXPECT_LE(capture.kept_bytes(), 800U);
}

TEST(Capture, CutsAtCharacters) {
    for (size_t shift = 0; shift < 4; ++shift) {
        Capture capture(401);
        capture.append(std::string(shift, 'x'));
        for (int i = 0; i < 500; ++i) capture.append("𝄞");
        EXPECT_TRUE(is_utf8(capture.text())) << shift;
    }
}

TEST(Capture, CountsBytesAlsoOfWhatIsNotUtf8) {
    Capture capture(400);
    capture.append(std::string(300, '\xFF'));
    EXPECT_EQ(capture.whole(), std::string(300, '\xFF'));
    EXPECT_EQ(capture.text().size(), 900U);  // each is U+FFFD
    capture.append(std::string(300, '\xFF'));
    EXPECT_FALSE(capture.whole());
    const std::string text = capture.text();
    size_t shown = 0;
    for (size_t at = text.find("\xEF\xBF\xBD"); at != std::string::npos; ++shown) {
        at = text.find("\xEF\xBF\xBD", at + 1);
    }
    EXPECT_EQ(shown + capture.omitted_bytes(), 600U);
}

}  // namespace
}  // namespace cloister::engine
