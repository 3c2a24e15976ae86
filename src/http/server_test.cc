#include "http/server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "base/time.h"
#include "os/tcp.h"

namespace cloister::http {
namespace {

using namespace std::chrono_literals;

// What the handlers of a test saw, read by the test's thread.
struct Seen {
    std::atomic<int> requests = 0;
    std::atomic<bool> gone = false;
    std::atomic<int> read_error = -1;
};

Task<void> echo(Request& request, Response& response) {
    auto body = co_await request.read_body(100'000);
    if (!body) {
        (void)co_await response.send(body.error().kind == ErrorKind::TooLarge ? 413 : 500, {},
                                     "echo failed");
        co_return;
    }
    Headers headers{{"Content-Type", "text/plain"}};
    std::string text = std::string(request.method()) + " " + std::string(request.path()) + " ";
    text += *body;
    (void)co_await response.send(200, std::move(headers), std::move(text));
}

Task<void> stream_three(Response& response) {
    (void)co_await response.start(200, {{"Content-Type", "text/plain"}});
    for (std::string piece : {"one,", "two,", "three"}) {
        (void)co_await response.write(piece);
        co_await sleep_for(2ms);
    }
    (void)co_await response.finish();
}

// Waits until the client goes; writes nothing meanwhile.
Task<void> wait_for_client_to_go(Response& response, Seen& seen) {
    (void)co_await response.start(200, {});
    Signal changed;
    response.on_disconnect([&changed] { changed.notify_all(); });
    while (!response.disconnected()) co_await changed.wait();
    auto written = co_await response.write("too late");
    EXPECT_FALSE(written);
    seen.gone = true;
}

// Writes until the client's socket takes no more.
Task<void> flood(Response& response, Seen& seen) {
    (void)co_await response.start(200, {});
    for (int i = 0; i < 100'000; ++i) {
        auto written = co_await response.write(std::string(65536, 'x'));
        if (!written) break;
    }
    seen.gone = response.disconnected();
}

Task<void> route(Seen& seen, Request& request, Response& response) {
    ++seen.requests;
    const std::string_view path = request.path();
    if (path == "/stream") co_return co_await stream_three(response);
    if (path == "/wait") co_return co_await wait_for_client_to_go(response, seen);
    if (path == "/flood") co_return co_await flood(response, seen);
    if (path == "/silent") co_return;
    if (path == "/throw") throw std::runtime_error("thrown on purpose");
    if (path == "/sleep") co_await sleep_for(30ms);
    if (path == "/early") {
        (void)co_await response.send(401, {}, "no body was read");
        co_return;
    }
    if (path == "/half") {
        (void)co_await response.start(200, {}, 10);
        (void)co_await response.write("12345");
        co_return;
    }
    if (path == "/inject") {
        (void)co_await response.send(204, {{"X-Name", "a\r\nX-Evil: 1"}}, "");
        co_return;
    }
    co_await echo(request, response);
}

// A server on a thread of its own.
class ServerTest : public ::testing::Test {
  protected:
    enum class Accepting { Now, Later };
    void start(ServerOptions options = {}, Accepting accepting = Accepting::Now) {
        std::promise<uint16_t> ready;
        thread_ = std::thread([this, options, accepting, &ready] {
            Loop loop;
            auto server = Server::create(
                loop, "127.0.0.1:0",
                [this](Request& request, Response& response) {
                    return route(seen_, request, response);
                },
                options);
            server_ = server->get();
            if (accepting == Accepting::Now) server_->start();
            loop_ = &loop;
            ready.set_value((*server)->port());
            loop.run();
        });
        port_ = ready.get_future().get();
    }
    void TearDown() override {
        if (!thread_.joinable()) return;
        loop_->stop();
        thread_.join();
    }
    os::Fd connect() const {
        auto socket = os::connect_tcp("127.0.0.1", std::to_string(port_), 5000);
        EXPECT_TRUE(socket);
        return std::move(*socket);
    }
    // Sends `bytes` and reads until the server closes.
    std::string talk(std::string_view bytes) {
        const os::Fd socket = connect();
        EXPECT_TRUE(os::send_all(socket, bytes));
        return os::read_all(socket, 1 << 20).value_or("(reset)");
    }
    static std::string read_until(const os::Fd& socket, std::string_view end) {
        std::string got;
        while (!got.ends_with(end)) {
            auto piece = os::receive_some(socket, 65536, 5000);
            if (!piece || piece->empty()) return got + "(closed)";
            got += *piece;
        }
        return got;
    }
    size_t open_connections() {
        std::promise<size_t> count;
        asio::post(loop_->context(), [&] { count.set_value(server_->connections()); });
        return count.get_future().get();
    }
    bool soon(const std::atomic<bool>& flag) {
        for (int i = 0; i < 400 && !flag; ++i) std::this_thread::sleep_for(5ms);
        return flag;
    }

    Seen seen_;
    Server* server_ = nullptr;
    Loop* loop_ = nullptr;
    uint16_t port_ = 0;
    std::thread thread_;
};

bool has(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

constexpr std::string_view kClose = "Host: x\r\nConnection: close\r\n";
std::string request_line(std::string_view line, std::string_view rest = "\r\n") {
    return std::string(line) + " HTTP/1.1\r\n" + std::string(kClose) + std::string(rest);
}

TEST_F(ServerTest, AnswersAndKeepsTheConnection) {
    start();
    const os::Fd socket = connect();
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(
            os::send_all(socket, "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi"));
        const std::string got = read_until(socket, "POST /a hi");
        EXPECT_TRUE(got.starts_with("HTTP/1.1 200 OK\r\n")) << got;
        EXPECT_TRUE(has(got, "Content-Length: 10\r\n")) << got;
        EXPECT_FALSE(has(got, "Connection: close")) << got;
    }
    EXPECT_EQ(open_connections(), 1U);
}

TEST_F(ServerTest, TakesARequestByteByByte) {
    start();
    const os::Fd socket = connect();
    for (char c :
         request_line("POST /slow",
                      "Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")) {
        ASSERT_TRUE(os::send_all(socket, std::string_view(&c, 1)));
        std::this_thread::sleep_for(200us);
    }
    EXPECT_TRUE(has(os::read_all(socket, 10000).value(), "POST /slow abcde"));
}

TEST_F(ServerTest, AnswersPipelinedRequestsInOrder) {
    start();
    const std::string got = talk(
        "GET /sleep HTTP/1.1\r\nHost: x\r\n\r\nPOST /2 HTTP/1.1\r\nHost: x\r\nContent-Length: 1"
        "\r\n\r\nBGET /3 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    const size_t one = got.find("GET /sleep "), two = got.find("POST /2 B"),
                 three = got.find("GET /3 ");
    EXPECT_TRUE(one < two && two < three && three != std::string::npos) << got;
}

TEST_F(ServerTest, StreamsInChunksAndToOldClientsUntilTheClose) {
    start();
    EXPECT_TRUE(has(talk(request_line("GET /stream")),
                    "\r\n\r\n4\r\none,\r\n4\r\ntwo,\r\n5\r\nthree\r\n0\r\n\r\n"));
    const std::string old = talk("GET /stream HTTP/1.0\r\n\r\n");
    EXPECT_TRUE(has(old, "\r\n\r\none,two,three")) << old;
    EXPECT_FALSE(has(old, "chunked")) << old;
}

TEST_F(ServerTest, AnswersHeadWithoutTheBody) {
    start();
    const std::string got = talk(request_line("HEAD /a"));
    EXPECT_TRUE(has(got, "Content-Length: 7\r\n")) << got;
    EXPECT_TRUE(got.ends_with("\r\n\r\n")) << got;
    EXPECT_TRUE(talk(request_line("HEAD /stream")).ends_with("\r\n\r\n"));
}

TEST_F(ServerTest, InvitesABodyThatWaitsForIt) {
    start();
    const os::Fd socket = connect();
    ASSERT_TRUE(os::send_all(
        socket, request_line("POST /a", "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")));
    EXPECT_EQ(read_until(socket, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    ASSERT_TRUE(os::send_all(socket, "ok"));
    EXPECT_TRUE(has(os::read_all(socket, 10000).value(), "POST /a ok"));
}

TEST_F(ServerTest, AnswersBeforeTheBodyWithoutInvitingIt) {
    start();
    const std::string got =
        talk(request_line("POST /early", "Expect: 100-continue\r\nContent-Length: 9\r\n\r\n"));
    EXPECT_TRUE(got.starts_with("HTTP/1.1 401 ")) << got;
    const std::string large =
        talk(request_line("POST /a", "Expect: 100-continue\r\nContent-Length: 100001\r\n\r\n"));
    EXPECT_TRUE(large.starts_with("HTTP/1.1 413 ")) << large;
}

TEST_F(ServerTest, AnUnreadBodyDoesNotBecomeTheNextRequest) {
    start();
    const os::Fd socket = connect();
    ASSERT_TRUE(
        os::send_all(socket, "POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nGET /"));
    EXPECT_FALSE(has(read_until(socket, "was read"), "Connection: close"));
    ASSERT_TRUE(os::send_all(
        socket, "POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 50000\r\n\r\nGET /x"));
    EXPECT_TRUE(has(os::read_all(socket, 10000).value_or("(reset)"), "Connection: close"));
    EXPECT_EQ(seen_.requests, 2);
}

struct Bad {
    const char* name;
    std::string bytes;
    int status;
};

TEST_F(ServerTest, RefusesBrokenRequestsWithAReason) {
    start();
    const std::string head = "POST /a HTTP/1.1\r\nHost: x\r\n";
    const std::vector<Bad> all = {
        {"garbage", "\x16\x03\x01\x02garbage\r\n\r\n", 400},
        {"no version", "GET /\r\n\r\n", 400},
        {"old version", "GET / HTTP/2.0\r\nHost: x\r\n\r\n", 400},
        {"no host", "GET / HTTP/1.1\r\n\r\n", 400},
        {"two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
        {"absolute target", "GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        {"length and coding",
         head + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
        {"coding and length",
         head + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400},
        {"two lengths", head + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400},
        {"negative length", head + "Content-Length: -1\r\n\r\n", 400},
        {"unknown coding", head + "Transfer-Encoding: gzip\r\n\r\n", 400},
        {"coding twice", head + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400},
        {"space before colon", "GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400},
        {"bad chunk", head + "Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n", 400},
        {"chunk without its end", head + "Transfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n", 400},
        {"huge chunk", head + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", 400},
        {"huge header", "GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(40'000, 'a'), 431},
        {"many headers", "GET / HTTP/1.1\r\n" + std::string(40'000, 'a'), 431},
        {"long target", "GET /" + std::string(9000, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n", 414},
        {"upload beyond all", head + "Content-Length: 99999999999999\r\n\r\n", 413},
    };
    for (const Bad& bad : all) {
        const std::string got = talk(bad.bytes);
        EXPECT_TRUE(got.starts_with("HTTP/1.1 " + std::to_string(bad.status) + " "))
            << bad.name << ": " << got;
        EXPECT_TRUE(has(got, "{\"error\":{\"code\":\"") && has(got, "\"request_id\":\""))
            << bad.name << ": " << got;
    }
    for (int i = 0; i < 200 && open_connections() > 0; ++i) std::this_thread::sleep_for(5ms);
    EXPECT_EQ(open_connections(), 0U);
}

TEST_F(ServerTest, ATruncatedBodyIsRefused) {
    start();
    const os::Fd socket = connect();
    ASSERT_TRUE(os::send_all(socket, request_line("POST /a", "Content-Length: 10\r\n\r\nabc")));
    os::shutdown_write(socket);
    EXPECT_TRUE(os::read_all(socket, 10000).value_or("(reset)").starts_with("HTTP/1.1 400 "));
}

TEST_F(ServerTest, AnswersAClientThatHasClosedItsWritingEnd) {
    start();
    const os::Fd socket = connect();
    ASSERT_TRUE(os::send_all(socket, "GET /sleep HTTP/1.1\r\nHost: x\r\n\r\n"));
    os::shutdown_write(socket);
    EXPECT_TRUE(has(os::read_all(socket, 10000).value_or("(reset)"), "GET /sleep "));
}

TEST_F(ServerTest, NoticesAClientThatGoesWhileNothingIsWritten) {
    start();
    {
        const os::Fd socket = connect();
        ASSERT_TRUE(os::send_all(socket, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"));
        (void)read_until(socket, "\r\n\r\n");
        EXPECT_FALSE(seen_.gone);
    }
    EXPECT_TRUE(soon(seen_.gone));
}

TEST_F(ServerTest, CutsOffAReaderThatTakesNothing) {
    start(ServerOptions{.write_timeout_ms = 100});
    const os::Fd socket = connect();
    ASSERT_TRUE(os::send_all(socket, "GET /flood HTTP/1.1\r\nHost: x\r\n\r\n"));
    EXPECT_TRUE(soon(seen_.gone));
}

TEST_F(ServerTest, CutsOffSlowSenders) {
    start(ServerOptions{.header_timeout_ms = 80, .body_timeout_ms = 80});
    const int64_t begin = steady_ms();
    EXPECT_EQ(talk(""), "");  // a connection that never speaks is closed without a word
    EXPECT_TRUE(talk("GET / HT").starts_with("HTTP/1.1 408 "));
    EXPECT_TRUE(talk("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc")
                    .starts_with("HTTP/1.1 408 "));
    EXPECT_LT(steady_ms() - begin, 10'000);
    EXPECT_GE(steady_ms() - begin, 230);
}

TEST_F(ServerTest, ADrippingHeaderHasOneDeadlineForAllOfIt) {
    start(ServerOptions{.header_timeout_ms = 100});
    const os::Fd socket = connect();
    const int64_t begin = steady_ms();
    std::string got;
    while (got.empty() && steady_ms() - begin < 3000) {
        if (!os::send_all(socket, "G")) break;
        auto piece = os::receive_some(socket, 1000, 10);
        if (piece) got = *piece;
    }
    EXPECT_TRUE(got.starts_with("HTTP/1.1 408 ") || got.starts_with("HTTP/1.1 400 ")) << got;
    EXPECT_LT(steady_ms() - begin, 1500);
}

TEST_F(ServerTest, AnswersForAHandlerThatFails) {
    start();
    EXPECT_TRUE(talk(request_line("GET /silent")).starts_with("HTTP/1.1 500 "));
    EXPECT_TRUE(has(talk(request_line("GET /throw")), "thrown on purpose"));
    const std::string half = talk(request_line("GET /half"));
    EXPECT_TRUE(has(half, "Content-Length: 10") && half.ends_with("12345")) << half;
}

TEST_F(ServerTest, AHeaderValueStaysOnItsLine) {
    start();
    const std::string got = talk(request_line("GET /inject"));
    EXPECT_TRUE(has(got, "X-Name: a  X-Evil: 1\r\n")) << got;
    EXPECT_FALSE(has(got, "Content-Length")) << got;
}

TEST_F(ServerTest, SaysWhenThereAreTooManyConnections) {
    start(ServerOptions{.connections_max = 2});
    const os::Fd one = connect(), two = connect();
    ASSERT_TRUE(os::send_all(one, "GET /1 HTTP/1.1\r\nHost: x\r\n\r\n"));
    (void)read_until(one, "GET /1 ");
    const std::string got = talk("");
    EXPECT_TRUE(got.starts_with("HTTP/1.1 503 ")) << got;
}

TEST_F(ServerTest, StopLetsARequestEndAndClosesIdleConnections) {
    start();
    const os::Fd busy = connect(), idle = connect();
    ASSERT_TRUE(os::send_all(busy, "GET /sleep HTTP/1.1\r\nHost: x\r\n\r\n"));
    while (seen_.requests == 0 || open_connections() < 2) std::this_thread::sleep_for(1ms);
    asio::post(loop_->context(), [this] { server_->stop(); });
    EXPECT_EQ(os::read_all(idle, 100).value_or("(reset)"), "");
    const std::string got = os::read_all(busy, 10000).value_or("(reset)");
    EXPECT_TRUE(has(got, "Connection: close") && got.ends_with("GET /sleep ")) << got;
    EXPECT_FALSE(os::connect_tcp("127.0.0.1", std::to_string(port_), 500));
}

TEST_F(ServerTest, ClientsThatComeBeforeTheStartWait) {
    start({}, Accepting::Later);
    const os::Fd early = connect();
    ASSERT_TRUE(
        os::write_all(early, "GET /later HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(seen_.requests, 0);
    asio::post(loop_->context(), [this] { server_->start(); });
    const std::string got = os::read_all(early, 10000).value_or("(reset)");
    EXPECT_TRUE(has(got, "HTTP/1.1 200")) << got;
}

TEST(ServerListen, NamesABadAddress) {
    Loop loop;
    for (const char* listen : {"8000", "nonsense:8000", "127.0.0.1:99999", "127.0.0.1:", ""}) {
        auto server = Server::create(loop, listen, {});
        ASSERT_FALSE(server) << listen;
        EXPECT_EQ(server.error().field, "listen");
    }
    EXPECT_FALSE(Server::create(loop, "203.0.113.7:0", {}));
}

TEST(Text, DecodesPercentEscapes) {
    EXPECT_EQ(percent_decode("a%20b%2Fc"), "a b/c");
    EXPECT_EQ(percent_decode("100%"), std::nullopt);
    EXPECT_EQ(percent_decode("%zz"), std::nullopt);
    EXPECT_EQ(percent_decode("a%00b"), std::nullopt);
}

TEST(Text, FindsQueryValues) {
    EXPECT_EQ(query_value("a=1&path=%2Fx%20y+z&path=2", "path"), "/x y z");
    EXPECT_EQ(query_value("a=1&eof", "eof"), "");
    EXPECT_EQ(query_value("a=1", "b"), std::nullopt);
    EXPECT_EQ(query_value("a=%z", "a"), std::nullopt);
}

TEST(Text, HeaderNamesHaveNoCase) {
    const Headers headers{{"Content-Type", "a"}};
    EXPECT_EQ(headers.count("content-TYPE"), 1U);
    EXPECT_EQ(headers.count("content-typ"), 0U);
}

}  // namespace
}  // namespace cloister::http
