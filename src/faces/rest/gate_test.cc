#include "faces/rest/gate.h"

#include <gtest/gtest.h>

namespace cloister::rest {
namespace {

bool passes(std::string host, std::string origin = "") {
    http::Headers headers{{"Host", std::move(host)}};
    if (!origin.empty()) headers.emplace("Origin", std::move(origin));
    return Gate({"box.example"}).check(headers).has_value();
}

TEST(Gate, KnowsLoopbackAndConfiguredNames) {
    for (const char* host : {"127.0.0.1", "127.0.0.1:8000", "localhost:1", "LocalHost", "[::1]:80",
                             "box.example:8000"}) {
        EXPECT_TRUE(passes(host)) << host;
    }
    for (const char* host : {"", "evil.example", "127.0.0.1.evil.example",
                             "localhost.evil.example:80", "[::2]", "10.0.0.1", ":8000"}) {
        EXPECT_FALSE(passes(host)) << host;
    }
}

TEST(Gate, AnOriginMustBeTheHostItself) {
    EXPECT_TRUE(passes("localhost:8000", "http://localhost:8000"));
    for (const char* origin : {"http://localhost:9000", "http://localhost", "http://evil.example",
                               "null", "file://", "https://localhost.evil.example"}) {
        EXPECT_FALSE(passes("localhost:8000", origin)) << origin;
    }
}

TEST(Gate, FindsTheKeyInEitherHeader) {
    EXPECT_EQ(key_in({{"Authorization", "Bearer abc"}}), "abc");
    EXPECT_EQ(key_in({{"authorization", "bearer abc"}}), "abc");
    EXPECT_EQ(key_in({{"X-API-Key", "abc"}}), "abc");
    EXPECT_EQ(key_in({{"Authorization", "Basic abc"}, {"X-API-Key", "other"}}), "");
    EXPECT_EQ(key_in({}), "");
}

}  // namespace
}  // namespace cloister::rest
