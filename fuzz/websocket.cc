// What a WebSocket's other end sends: however its bytes are cut into reads, they are the same
// messages or the same violation, and no message is larger than allowed. The first byte of the
// input says how they are cut, and its first bit from which end they come.
#include <algorithm>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "fuzz.h"
#include "http/websocket_codec.h"

namespace {

using cloister::http::WebSocketKind;
using cloister::http::WebSocketMessage;
using cloister::http::WebSocketPeer;

constexpr size_t kMessageMax = 4096;

struct Decoded {
    std::vector<WebSocketMessage> messages;
    uint16_t violation = 0;
};

Decoded decode(std::string_view stream, size_t step, WebSocketPeer peer) {
    Decoded out;
    cloister::http::WebSocketDecoder decoder(kMessageMax, peer);
    while (!stream.empty() && out.violation == 0) {
        decoder.feed(stream.substr(0, step));
        stream.remove_prefix(std::min(step, stream.size()));
        for (;;) {
            auto message = decoder.next();
            if (!message) out.violation = message.error().code;
            if (!message || !*message) break;
            out.messages.push_back(std::move(**message));
        }
    }
    return out;
}

bool same(const WebSocketMessage& a, const WebSocketMessage& b) {
    return a.kind == b.kind && a.payload == b.payload && a.close_code == b.close_code;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    const std::string_view stream = cloister::fuzz::text_of(data + 1, size - 1);
    const auto peer = data[0] < 0x80 ? WebSocketPeer::Client : WebSocketPeer::Server;
    const Decoded whole = decode(stream, std::max<size_t>(stream.size(), 1), peer);
    const Decoded pieces = decode(stream, (data[0] & 0x7FU) + 1, peer);
    EXPECT(whole.violation == pieces.violation);
    EXPECT(std::ranges::equal(whole.messages, pieces.messages, same));
    for (const WebSocketMessage& message : whole.messages) {
        EXPECT(message.payload.size() <= kMessageMax);
        EXPECT(message.kind != WebSocketKind::Continuation);
        EXPECT(message.kind != WebSocketKind::Text || cloister::is_utf8(message.payload));
    }
    return 0;
}
