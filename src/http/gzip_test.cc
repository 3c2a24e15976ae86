#include "http/gzip.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace cloister::http {
namespace {

std::string gzipped(std::string_view text) {
    z_stream z{};
    EXPECT_EQ(::deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    std::string out(::deflateBound(&z, text.size()) + 32, '\0');
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    z.avail_in = static_cast<uInt>(text.size());
    z.next_out = reinterpret_cast<Bytef*>(out.data());
    z.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(::deflate(&z, Z_FINISH), Z_STREAM_END);
    out.resize(z.total_out);
    ::deflateEnd(&z);
    return out;
}

Result<std::string> inflated(std::string_view bytes, size_t step, Inflater& inflater) {
    std::string all;
    for (size_t at = 0; at < bytes.size(); at += step) {
        inflater.feed(std::string(bytes.substr(at, step)));
        for (;;) {
            const std::string piece = TRY(inflater.next());
            if (piece.empty()) break;
            EXPECT_LE(piece.size(), 64U * 1024);
            all += piece;
        }
    }
    return all;
}

TEST(Inflater, UnpacksInPieces) {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += std::to_string(i * 7919);
    for (const size_t step : {1U, 1000U, 100'000'000U}) {
        Inflater inflater(1 << 30, 1000);
        EXPECT_EQ(inflated(gzipped(text), step, inflater).value(), text);
        EXPECT_TRUE(inflater.finished());
    }
}

TEST(Inflater, TakesSeveralStreams) {
    Inflater inflater(1 << 30, 1000);
    EXPECT_EQ(inflated(gzipped("one") + gzipped("two"), 7, inflater).value(), "onetwo");
    EXPECT_TRUE(inflater.finished());
}

TEST(Inflater, KnowsWhatIsBroken) {
    Inflater no(1 << 30, 1000);
    EXPECT_EQ(inflated("no gzip at all", 100, no).error().kind, ErrorKind::InvalidArgument);
    const std::string good = gzipped("some text");
    Inflater cut(1 << 30, 1000);
    EXPECT_TRUE(inflated(good.substr(0, good.size() - 1), 100, cut));
    EXPECT_FALSE(cut.finished());
}

TEST(Inflater, BoundsABomb) {
    const std::string bomb = gzipped(std::string(50 << 20, '\0'));
    Inflater inflater(1 << 20, 100);
    EXPECT_EQ(inflated(bomb, 1000, inflater).error().kind, ErrorKind::TooLarge);
}

}  // namespace
}  // namespace cloister::http
