#include "http/proxy.h"

#include <gtest/gtest.h>

#include "http/answer_parser.h"

namespace cloister::http {
namespace {

TEST(Proxy, KnowsWhatBelongsToAConnection) {
    const Headers headers{{"Connection", "close, X-Own"}, {"X-Own", "1"}, {"X-Other", "1"}};
    for (const char* name : {"connection", "Transfer-Encoding", "TE", "UPGRADE", "x-own"}) {
        EXPECT_TRUE(is_hop_by_hop(name, headers)) << name;
    }
    for (const char* name : {"X-Other", "Content-Type", "Cookie", "Authorization"}) {
        EXPECT_FALSE(is_hop_by_hop(name, headers)) << name;
    }
}

TEST(AnswerParser, TakesAnAnswerInPieces) {
    const std::string text =
        "HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    AnswerParser parser;
    std::string body;
    std::optional<AnswerHead> head;
    for (const char c : text) {
        parser.feed({&c, 1});
        if (!head) head = parser.head().value();
        if (head) body += parser.body().value();
    }
    ASSERT_TRUE(head);
    EXPECT_EQ(head->status, 200);
    EXPECT_EQ(head->headers.count("set-cookie"), 2U);
    EXPECT_EQ(body, "abcde");
    EXPECT_TRUE(parser.done());
}

TEST(AnswerParser, GoesOnBehindAnInformationalAnswer) {
    AnswerParser parser;
    parser.feed("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno");
    EXPECT_EQ(parser.head().value()->status, 100);
    parser.start_again();
    EXPECT_EQ(parser.head().value()->status, 404);
    EXPECT_EQ(parser.body().value(), "no");
}

TEST(AnswerParser, GivesBackWhatIsAnotherProtocol) {
    AnswerParser parser;
    parser.feed("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nraw");
    EXPECT_EQ(parser.head().value()->status, 101);
    EXPECT_EQ(parser.take_rest(), "raw");
}

TEST(AnswerParser, ABreakIsNoEnd) {
    AnswerParser parser;
    parser.feed("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    ASSERT_TRUE(parser.head().value());
    EXPECT_EQ(parser.body().value(), "half");
    parser.end_of_input();
    EXPECT_FALSE(parser.body());
    AnswerParser silent;
    silent.end_of_input();
    EXPECT_FALSE(silent.head());
    AnswerParser nonsense;
    nonsense.feed("SSH-2.0-OpenSSH\r\n\r\n");
    EXPECT_FALSE(nonsense.head());
}

}  // namespace
}  // namespace cloister::http
