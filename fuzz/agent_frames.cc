// The frames of the agent protocol: however a stream is cut into reads, it is the same frames, and
// they are the bytes that were read. The first byte of the input says how it is cut.
#include <algorithm>
#include <string>
#include <vector>

#include "fuzz.h"
#include "wire/frame.h"

namespace {

using cloister::Frame;

constexpr size_t kPayloadMax = 4096;

struct Decoded {
    std::vector<Frame> frames;
    bool malformed = false;
};

Decoded decode(std::string_view stream, size_t step) {
    Decoded out;
    cloister::FrameDecoder decoder(kPayloadMax);
    while (!stream.empty() && !out.malformed) {
        decoder.feed(stream.substr(0, step));
        stream.remove_prefix(std::min(step, stream.size()));
        for (;;) {
            auto frame = decoder.next();
            out.malformed = !frame;
            if (!frame || !*frame) break;
            out.frames.push_back(std::move(**frame));
        }
    }
    return out;
}

std::string encode(const std::vector<Frame>& frames) {
    std::string out;
    for (const Frame& frame : frames) cloister::append_frame(out, frame.kind, frame.payload);
    return out;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    const std::string_view stream = cloister::fuzz::text_of(data + 1, size - 1);
    const Decoded whole = decode(stream, std::max<size_t>(stream.size(), 1));
    const Decoded pieces = decode(stream, data[0] + 1U);
    EXPECT(whole.malformed == pieces.malformed);
    const std::string bytes = encode(whole.frames);
    EXPECT(bytes == encode(pieces.frames));
    EXPECT(stream.starts_with(bytes));
    for (const Frame& frame : whole.frames) EXPECT(frame.payload.size() <= kPayloadMax);
    return 0;
}
