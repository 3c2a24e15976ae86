#include "http/websocket.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/limits.h"
#include "http/test_server.h"
#include "os/tcp.h"

namespace cloister::http {
namespace {

constexpr std::string_view kUpgrade =
    "GET / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

// A short frame of a client, with a mask of zeros.
std::string frame(uint8_t first, std::string_view payload) {
    std::string out(1, static_cast<char>(first));
    out += static_cast<char>(0x80 | payload.size());
    out += std::string(4, '\0');
    return out += payload;
}

std::string close_frame(uint16_t code) {
    return websocket_frame(WebSocketKind::Close, close_payload(code, ""));
}

// Echoes messages until one says "enough", or "refuse".
class WebSocketTest : public ::testing::Test {
  protected:
    Task<void> serve(Request& request, Response& response) {
        const auto socket = co_await response.upgrade(request, 100);
        if (!socket) {
            (void)co_await response.send(400, {}, socket.error().message);
            co_return;
        }
        Signal changed;
        bool enough = false;
        response.on_disconnect([&changed] { changed.notify_all(); });
        (*socket)->listen([&](WebSocketMessage message) {
            return echo(**socket, std::move(message), enough, changed);
        });
        while (!enough && !response.disconnected()) co_await changed.wait();
        gone_ = response.disconnected();
        (void)co_await response.finish();
        finished_ = true;
    }
    static Task<Result<void>> echo(WebSocket& socket, WebSocketMessage message, bool& enough,
                                   Signal& changed) {
        if (message.payload == "refuse") {
            co_return make_error(ErrorKind::InvalidArgument, "not that");
        }
        if (message.payload == "enough") {
            enough = true;
            changed.notify_all();
            co_return Result<void>{};
        }
        co_return co_await socket.send(message.kind, message.payload);
    }

    // Sends the handshake and `bytes`, and answers what comes until the server closes.
    std::string talk(std::string_view bytes, std::string_view handshake = kUpgrade) {
        const os::Fd socket = connect();
        EXPECT_TRUE(os::send_all(socket, std::string(handshake) + std::string(bytes)));
        return os::read_all(socket, 1 << 20).value_or("(reset)");
    }
    // The same, without the answer to the handshake.
    std::string frames_for(std::string_view bytes) {
        const std::string got = talk(bytes);
        EXPECT_TRUE(got.starts_with("HTTP/1.1 101 ")) << got;
        return got.substr(std::min(got.find("\r\n\r\n"), got.size() - 4) + 4);
    }
    os::Fd connect() const {
        const std::string& url = server_.url();
        return os::connect_tcp("127.0.0.1", url.substr(url.rfind(':') + 1), 5000).value();
    }

    std::atomic<bool> gone_ = false, finished_ = false;
    TestServer server_{
        [this](Request& request, Response& response) { return serve(request, response); }};
};

TEST_F(WebSocketTest, TheHandshakeIsAnswered) {
    const std::string got = talk(frame(0x88, ""));
    EXPECT_TRUE(got.starts_with("HTTP/1.1 101 Switching Protocols\r\n")) << got;
    EXPECT_NE(got.find("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"),
              std::string::npos);
}

TEST_F(WebSocketTest, WhatIsNoHandshakeIsRefusedInWords) {
    const std::string upgrade(kUpgrade);
    for (const auto& [from, to] :
         {std::pair{"Upgrade: WebSocket", "Upgrade: other"},
          std::pair{"keep-alive, Upgrade", "keep-alive"}, std::pair{"Version: 13", "Version: 8"},
          std::pair{"bXBsZSBub25jZQ==", "b"}, std::pair{"GET", "HEAD"},
          std::pair{"HTTP/1.1", "HTTP/1.0"}}) {
        std::string broken = upgrade;
        broken.replace(broken.find(from), std::string_view(from).size(), to);
        broken.insert(broken.size() - 2, "X-Rest: y\r\n");
        const os::Fd socket = connect();
        ASSERT_TRUE(os::send_all(socket, broken));
        const auto got = os::receive_some(socket, 4096, 5000);
        ASSERT_TRUE(got) << to;
        EXPECT_EQ(got->substr(0, 13), "HTTP/1.1 400 ") << to;
    }
}

TEST_F(WebSocketTest, MessagesPingsAndCloseAreAnswered) {
    EXPECT_EQ(frames_for(frame(0x81, "one") + frame(0x89, "p") + frame(0x02, "t") +
                         frame(0x80, "wo") + frame(0x88, close_payload(1000, ""))),
              websocket_frame(WebSocketKind::Text, "one") +
                  websocket_frame(WebSocketKind::Pong, "p") +
                  websocket_frame(WebSocketKind::Binary, "two") + close_frame(1000));
    EXPECT_TRUE(gone_);
}

TEST_F(WebSocketTest, ViolationsCloseWithTheirCode) {
    EXPECT_EQ(frames_for(frame(0x81, "\xFF")).substr(2, 2), close_payload(1007, ""));
    EXPECT_EQ(frames_for(frame(0x81, std::string(101, 'x'))).substr(2, 2), close_payload(1009, ""));
    EXPECT_EQ(frames_for("\x81\x01x").substr(2, 2), close_payload(1002, ""));
    EXPECT_EQ(frames_for(frame(0x81, "refuse")).substr(2), close_payload(1008, "not that"));
}

TEST_F(WebSocketTest, TheServerSaysCloseAndWaitsForTheAnswer) {
    const os::Fd socket = connect();
    ASSERT_TRUE(os::send_all(socket, std::string(kUpgrade) + frame(0x81, "enough")));
    std::string got;
    while (!got.ends_with(close_frame(1000))) {
        const auto more = os::receive_some(socket, 4096, 5000);
        ASSERT_TRUE(more && !more->empty()) << got;
        got += *more;
    }
    EXPECT_FALSE(finished_);
    ASSERT_TRUE(os::send_all(socket, frame(0x88, close_payload(1000, ""))));
    EXPECT_EQ(os::read_all(socket, 100).value_or("(reset)"), "");
    EXPECT_TRUE(finished_);
    EXPECT_FALSE(gone_);
}

TEST_F(WebSocketTest, AClientThatNeverAnswersIsNotWaitedForLong) {
    const os::Fd socket = connect();
    ASSERT_TRUE(os::send_all(socket, std::string(kUpgrade) + frame(0x81, "enough")));
    EXPECT_TRUE(os::read_all(socket, 4096).value_or("(reset)").ends_with(close_frame(1000)));
}

TEST_F(WebSocketTest, AClientThatVanishesIsNoticed) {
    {
        const os::Fd socket = connect();
        ASSERT_TRUE(os::send_all(socket, kUpgrade));
        ASSERT_TRUE(os::receive_some(socket, 4096, 5000));
    }
    for (int i = 0; i < 500 && !finished_; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(gone_);
    EXPECT_TRUE(finished_);
}

}  // namespace
}  // namespace cloister::http
