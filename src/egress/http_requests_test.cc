#include "egress/http_requests.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace cloister::egress {
namespace {

// Hosts of the requests in `bytes`, which come in pieces; "refused" if one is; checks that
// everything that is let through is what came in.
std::string hosts_in(std::string_view bytes, size_t piece) {
    HttpRequests requests;
    std::string hosts, passed;
    const std::string_view all = bytes;
    while (!bytes.empty()) {
        std::string_view part = bytes.substr(0, piece);
        bytes.remove_prefix(part.size());
        while (!part.empty()) {
            const auto step = requests.next(part);
            if (!step) return hosts + "refused";
            part.remove_prefix(step->used);
            passed += step->forward;
            if (step->kind != HttpRequests::Step::Kind::Head) continue;
            const Host& host = requests.head().host;
            hosts += std::holds_alternative<std::string>(host) ? std::get<std::string>(host)
                                                               : std::get<IpAddress>(host).text();
            hosts += ' ';
        }
    }
    EXPECT_TRUE(all.starts_with(passed));
    return hosts;
}

std::string head(std::string_view fields, std::string_view line = "GET / HTTP/1.1") {
    return std::string(line) + "\r\n" + std::string(fields) + "\r\n";
}

TEST(HttpRequests, FindsTheHostOfEachRequest) {
    const std::string all =
        head("Host: A.example\r\n") +
        head("Host: b.example:8080\r\nContent-Length: 40\r\n", "POST /x HTTP/1.1") +
        "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n__" +
        head("Transfer-Encoding: chunked\r\nhost:\t c.example \r\n", "PUT / HTTP/1.1") +
        "5;x=y\r\nabcde\r\n1E\r\nGET / HTTP/1.1\r\nHost: evil\r\n\r\n\r\n0\r\nT: v\r\n\r\n" +
        head("Host: [::1]:80\r\n") + head("Host: 0x7f.1\r\n");
    for (const size_t piece : {1u, 2u, 3u, 17u, 100'000u}) {
        EXPECT_EQ(hosts_in(all, piece), "a.example b.example c.example ::1 127.0.0.1 ") << piece;
    }
}

TEST(HttpRequests, RefusesWhatCouldBeReadInTwoWays) {
    for (const std::string& one :
         {head(""),
          head("Host: a\r\nHost: b\r\n"),
          head("Host: a\r\n Host: b\r\n"),
          head("Host : a\r\n"),
          head("Host: a b\r\n"),
          head("Host: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n"),
          head("Host: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n"),
          head("Host: a\r\nTransfer-Encoding: gzip, chunked\r\n"),
          head("Host: a\r\nContent-Length: -1\r\n"),
          head("Host: a\r\nContent-Length: 0x1\r\n"),
          head("Host: a\nX: y\r\n"),
          head("Host: a\rX: y\r\n"),
          head("Host: a\r\n", "GET / HTTP/2.0"),
          head("Host: a\r\n", "GET  / HTTP/1.1"),
          head("Host: a\r\n", "CONNECT a:443 HTTP/1.1"),
          head("Host: a\r\n", "GET http://b/ HTTP/1.1"),
          head("Host: a\r\n", "GET b HTTP/1.1"),
          head("Host: a\r\n", "GET /"),
          head("Host: a:x\r\n"),
          head("Host: a@b\r\n"),
          head(std::string("Host: a\0b\r\n", 11)),
          head("no colon\r\nHost: a\r\n")}) {
        EXPECT_EQ(hosts_in(one, 100'000), "refused") << one;
        EXPECT_EQ(hosts_in(one, 3), "refused") << one;
    }
    EXPECT_EQ(hosts_in(head("Host: A\r\n", "GET http://a/x HTTP/1.1"), 100), "a ");
    EXPECT_EQ(hosts_in(head("Host: a\r\nTransfer-Encoding: chunked\r\n") + "5\nabcde", 100),
              "a refused");
    EXPECT_EQ(hosts_in(head("Host: a\r\nTransfer-Encoding: chunked\r\n") + "5\r\nabcdeX\r\n", 100),
              "a refused");
    EXPECT_EQ(hosts_in(head("Host: a\r\nTransfer-Encoding: chunked\r\n") + "-5\r\n", 100),
              "a refused");
}

TEST(HttpRequests, AHeadHasALargestSize) {
    EXPECT_EQ(hosts_in("GET /" + std::string(70'000, 'x'), 1'000), "refused");
    EXPECT_EQ(hosts_in(head("Host: a\r\nX: " + std::string(60'000, 'x') + "\r\n"), 1'000), "a ");
}

TEST(HttpRequests, TellsUpgradesApart) {
    EXPECT_TRUE(parse_http_head(head("Host: a\r\nUpgrade: websocket\r\n"))->upgrade);
    EXPECT_FALSE(parse_http_head(head("Host: a\r\n"))->upgrade);
    EXPECT_EQ(parse_http_head(head("Host: a:81\r\n"))->port, 81);
}

TEST(HttpRequests, KnowsItsBeginning) {
    EXPECT_EQ(looks_like_http("GET /"), LooksLike::Yes);
    EXPECT_EQ(looks_like_http("GE"), LooksLike::Maybe);
    EXPECT_EQ(looks_like_http(""), LooksLike::Maybe);
    EXPECT_EQ(looks_like_http("SSH-2.0-x"), LooksLike::No);
    EXPECT_EQ(looks_like_http("\x16\x03"), LooksLike::No);
    EXPECT_EQ(looks_like_http("AB /"), LooksLike::No);
}

}  // namespace
}  // namespace cloister::egress
