#include "wire/root_command.h"

#include <gtest/gtest.h>

#include <string>

#include "base/limits.h"

namespace cloister {
namespace {

std::string body_of(const RootRequest& request) {
    return encode(request).value().substr(4);
}

TEST(RootRequest, TravelsWhole) {
    const RootRequest sent{.identity = RootIdentity::User,
                           .cwd = "/tmp/a b",
                           .argv = {"/bin/echo", "", "two\nlines", "é"},
                           .env = {"A=1", "B="}};
    const std::string message = encode(sent).value();
    EXPECT_EQ(static_cast<unsigned char>(message[0]), message.size() - 4);
    const auto received = decode_root_request(message.substr(4));
    ASSERT_TRUE(received);
    EXPECT_EQ(received->identity, RootIdentity::User);
    EXPECT_EQ(received->cwd, sent.cwd);
    EXPECT_EQ(received->argv, sent.argv);
    EXPECT_EQ(received->env, sent.env);
}

TEST(RootRequest, WithoutACommandIsAQuestion) {
    const auto received = decode_root_request(body_of({.cwd = "/", .argv = {}, .env = {"A=1"}}));
    ASSERT_TRUE(received);
    EXPECT_TRUE(received->argv.empty());
    EXPECT_EQ(received->env.size(), 1u);
}

TEST(RootRequest, IsRefusedWhenMalformed) {
    using namespace std::string_literals;
    for (const std::string& bytes :
         {""s, "r"s, "r/\0"s, "x/\0001\0ls\0"s, "r/\0-1\0ls\0"s, "r/\0002\0ls\0"s, "r/\0one\0ls\0"s,
          "r/\0001\0ls"s, "r/\00018446744073709551615\0ls\0"s}) {
        EXPECT_FALSE(decode_root_request(bytes)) << testing::PrintToString(bytes);
    }
}

TEST(RootRequest, CutShortIsNeverAnotherRequest) {
    const std::string whole =
        body_of({.cwd = "/home/user", .argv = {"/bin/sh", "-c", "exit 3"}, .env = {"A=1"}});
    for (size_t size = 0; size < whole.size(); ++size) {
        const auto received = decode_root_request(whole.substr(0, size));
        if (received) EXPECT_EQ(received->argv.size(), 3u) << "only the environment may be missing";
    }
}

TEST(RootRequest, HasALimit) {
    const RootRequest huge{.argv = {"/bin/echo", std::string(limits::kRootRequestMax, 'x')}};
    const auto encoded = encode(huge);
    ASSERT_FALSE(encoded);
    EXPECT_EQ(encoded.error().kind, ErrorKind::TooLarge);
}

TEST(RootReply, SaysHowItEndedOrWhyNot) {
    const auto ended = decode_root_reply(encode(RootReply{.exit_code = 137}));
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->exit_code, 137);
    const auto refused = decode_root_reply(encode(RootReply{.refusal = "no"}));
    ASSERT_TRUE(refused);
    EXPECT_FALSE(refused->exit_code);
    EXPECT_EQ(refused->refusal, "no");
    EXPECT_FALSE(decode_root_reply("")) << "the agent died";
    EXPECT_FALSE(decode_root_reply("e"));
}

}  // namespace
}  // namespace cloister
