#include "http/client.h"

#include <gtest/gtest.h>

#include "http/test_server.h"

namespace cloister::http {
namespace {

using namespace std::chrono_literals;

Task<void> serve(Request& request, Response& response) {
    if (request.path() == "/events") {
        (void)co_await response.start(200, {{"Content-Type", "text/event-stream"}});
        for (int i = 0; i < 3; ++i) {
            (void)co_await response.write("event " + std::to_string(i) + "\n");
            co_await sleep_for(20ms);
        }
        (void)co_await response.finish();
        co_return;
    }
    if (request.path() == "/break") {
        (void)co_await response.start(200, {});
        (void)co_await response.write("half");
        response.abort();
        co_return;
    }
    if (request.path() == "/refuse") {
        (void)co_await response.send(413, {}, "too large");
        co_return;
    }
    std::string text =
        std::string(request.method()) + "|" + std::string(request.header("X-Test")) + "|";
    auto body = co_await request.read_body(8 << 20);
    if (body) text += *body;
    (void)co_await response.send(200, {{"X-Answer", "yes"}}, std::move(text));
}

class ClientTest : public ::testing::Test {
  protected:
    Client client() { return Client::create(server_.url()).value(); }

    TestServer server_{serve};
};

TEST_F(ClientTest, SendsAndReadsAnswers) {
    ClientRequest request{
        .method = "POST", .target = "/a", .headers = {{"X-Test", "7"}}, .body = "body"};
    const ClientResponse response = client().send(request, 1000).value();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "POST|7|body");
    EXPECT_EQ(response.headers.at("x-answer"), "yes");
    EXPECT_EQ(client().send(request, 4).error().kind, ErrorKind::TooLarge);
}

TEST_F(ClientTest, SendsABodyOfUnknownLength) {
    int left = 40;
    ClientRequest request{.method = "PUT", .target = "/a"};
    request.body_source = [&]() -> Result<std::string> {
        return left-- > 0 ? std::string(65536, 'z') : "";
    };
    EXPECT_EQ(client().send(request, 8 << 20)->body.size(), 40U * 65536 + 5);
    request.body_source = []() -> Result<std::string> {
        return make_error(ErrorKind::NotFound, "no file");
    };
    EXPECT_EQ(client().send(request, 1000).error().kind, ErrorKind::NotFound);
}

TEST_F(ClientTest, ReadsTheAnswerOfAServerThatDoesNotWantTheBody) {
    ClientRequest request{.method = "PUT", .target = "/refuse", .body = std::string(6 << 20, 'x')};
    const auto response = client().send(request, 1000);
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->status, 413);
}

TEST_F(ClientTest, StreamsAnAnswerAsItComes) {
    std::vector<std::string> pieces;
    const ClientRequest request{.target = "/events"};
    auto take = [&](std::string_view piece) -> Result<void> {
        pieces.emplace_back(piece);
        return {};
    };
    ASSERT_TRUE(client().stream(request, take));
    std::string whole;
    for (const std::string& piece : pieces) whole += piece;
    EXPECT_EQ(whole, "event 0\nevent 1\nevent 2\n");
    EXPECT_GT(pieces.size(), 1U);
    auto stop = [](std::string_view) -> Result<void> {
        return make_error(ErrorKind::Cancelled, "enough");
    };
    EXPECT_EQ(client().stream(request, stop).error().kind, ErrorKind::Cancelled);
}

TEST_F(ClientTest, SaysThatAnAnswerBrokeOff) {
    auto broken = client().send({.target = "/break"}, 1000);
    ASSERT_FALSE(broken);
    EXPECT_EQ(broken.error().kind, ErrorKind::Unavailable);
}

TEST_F(ClientTest, RefusesToSendWhatIsNoHeader) {
    EXPECT_FALSE(client().send({.target = "/a b"}, 1000));
    EXPECT_FALSE(client().send({.target = "/a", .headers = {{"X", "1\r\nY: 2"}}}, 1000));
}

TEST(ClientUrl, NamesABadUrl) {
    for (const char* url : {"", "127.0.0.1:8000", "https://x:1", "http://", "http://x:0",
                            "http://x:1/path", "http://a b:1"}) {
        EXPECT_FALSE(Client::create(url)) << url;
    }
    EXPECT_TRUE(Client::create("http://[::1]:8000/"));
    EXPECT_TRUE(Client::create("http://example"));
}

}  // namespace
}  // namespace cloister::http
