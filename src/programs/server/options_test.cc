#include "programs/server/options.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace cloister::server {
namespace {

Result<Options> parse(std::vector<const char*> words) {
    words.insert(words.begin(), "cloisterd");
    return parse_options(static_cast<int>(words.size()), words.data());
}

TEST(Options, TakesEveryFlag) {
    ::setenv("CLOISTER_API_KEY", "k", 1);
    const auto options = parse({"--data", "/d", "--listen", "box:1", "--log-level", "warn",
                                "--idle-exit-ms", "5", "--ready-fd", "3", "--name", "alias"});
    ::unsetenv("CLOISTER_API_KEY");
    ASSERT_TRUE(options);
    EXPECT_EQ(options->data, "/d");
    EXPECT_EQ(options->names, (std::vector<std::string>{"alias", "box"}));
    EXPECT_EQ(options->log_level, LogLevel::Warn);
    EXPECT_EQ(options->idle_exit_ms, 5);
    EXPECT_EQ(options->ready_fd, 3);
    EXPECT_EQ(options->api_key, "k");
}

TEST(Options, ReadsTheNetworkFromItsVariable) {
    ::setenv("CLOISTER_NETWORK",
             R"({"platform_allow":["10.1.2.3"],"dns_servers":[],"ca_bundle":true})", 1);
    const auto options = parse({});
    ::setenv("CLOISTER_NETWORK", R"({"unknown":1})", 1);
    const auto refused = parse({});
    ::unsetenv("CLOISTER_NETWORK");
    ASSERT_TRUE(options);
    EXPECT_EQ(options->network.platform_allow, std::vector<std::string>{"10.1.2.3"});
    EXPECT_TRUE(options->network.ca_bundle);
    EXPECT_FALSE(refused);
}

TEST(Options, RefusesWhatItDoesNotKnow) {
    for (const auto& words : std::vector<std::vector<const char*>>{{"--no-such"},
                                                                   {"--log-level", "loud"},
                                                                   {"--idle-exit-ms", "0"},
                                                                   {"--ready-fd", "-1"},
                                                                   {"word"}}) {
        const auto options = parse(words);
        ASSERT_FALSE(options) << words.front();
        EXPECT_FALSE(options.error().message.empty()) << words.front();
    }
}

TEST(Options, AnAddressOfEverythingIsNoName) {
    EXPECT_TRUE(names_of("0.0.0.0:80").empty());
    EXPECT_TRUE(names_of("[::]:80").empty());
    EXPECT_EQ(names_of("[::1]:80"), std::vector<std::string>{"[::1]"});
}

}  // namespace
}  // namespace cloister::server
