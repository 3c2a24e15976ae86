#include "egress/dns_message.h"

#include <gtest/gtest.h>

namespace cloister::egress::dns {
namespace {

using namespace std::literals;

IpAddress ip(std::string_view text) {
    return *parse_address(text);
}

// The answer to encode_question(7, "www.example", A) with these records.
std::string reply(const std::string& records, uint8_t count, uint8_t flags_low = 0x80,
                  uint8_t flags_high = 0x81) {
    std::string out = encode_question(7, "www.example", Type::A);
    out[2] = static_cast<char>(flags_high);
    out[3] = static_cast<char>(flags_low);
    out[7] = static_cast<char>(count);
    out[11] = 0;
    out.resize(out.size() - 11);  // its OPT
    return out + records;
}
const std::string kA = "\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xcb\0\x71\x05"s;

TEST(DnsMessage, AQuestionIsReadAndAnswered) {
    const std::string asked = encode_question(0x1234, "www.example.com", Type::Aaaa);
    const Question question = parse_question(asked).value();
    EXPECT_EQ(question.id, 0x1234);
    EXPECT_EQ(question.name, "www.example.com");
    EXPECT_EQ(question.type, static_cast<uint16_t>(Type::Aaaa));
    EXPECT_TRUE(question.edns);
    const std::string answer = encode_answer(
        question, {.addresses = {ip("2001:db8::1"), ip("2001:db8::2")}, .ttl = 30}, 512);
    const ServerAnswer read = parse_answer(answer, 0x1234, "www.example.com", Type::Aaaa).value();
    EXPECT_EQ(read.code, Code::Ok);
    EXPECT_EQ(read.addresses, (std::vector{ip("2001:db8::1"), ip("2001:db8::2")}));
    EXPECT_EQ(read.ttl, 30u);
}

TEST(DnsMessage, AnAnswerThatDoesNotFitSaysSo) {
    const Question question = parse_question(encode_question(1, "a.b", Type::A)).value();
    Answer answer{.ttl = 1};
    answer.addresses.assign(100, ip("203.0.113.1"));
    const std::string bytes = encode_answer(question, answer, kUdpPlain);
    EXPECT_LE(bytes.size(), kUdpPlain);
    const ServerAnswer read = parse_answer(bytes, 1, "a.b", Type::A).value();
    EXPECT_TRUE(read.truncated);
    EXPECT_GT(read.addresses.size(), 20u);
}

TEST(DnsMessage, AliasesAreFollowed) {
    // www.example CNAME cdn (pointer to "example"); cdn.example A
    const std::string alias =
        "\xc0\x0c\0\x05\0\x01\0\0\0\x05\0\x06\x03"
        "cdn\xc0\x10"s;
    const std::string target =
        "\x03"
        "cdn\x07"
        "example\0\0\x01\0\x01\0\0\0\x3c\0\x04\xcb\0\x71\x05"s;
    const ServerAnswer read =
        parse_answer(reply(alias + target, 2), 7, "WWW.example", Type::A).value();
    EXPECT_EQ(read.addresses, std::vector{ip("203.0.113.5")});
    EXPECT_EQ(read.ttl, 5u);
}

TEST(DnsMessage, RecordsOfOtherNamesDoNotCount) {
    const std::string other =
        "\x04"
        "evil\0\0\x01\0\x01\0\0\0\x3c\0\x04\xcb\0\x71\x05"s;
    EXPECT_TRUE(parse_answer(reply(other, 1), 7, "www.example", Type::A).value().addresses.empty());
}

TEST(DnsMessage, AliasesInACircleEnd) {
    const std::string alias = "\xc0\x0c\0\x05\0\x01\0\0\0\x05\0\x02\xc0\x0c"s;
    EXPECT_TRUE(parse_answer(reply(alias, 1), 7, "www.example", Type::A).value().addresses.empty());
}

TEST(DnsMessage, AnAnswerToAnotherQuestionIsNone) {
    EXPECT_TRUE(parse_answer(reply(kA, 1), 7, "www.example", Type::A));
    EXPECT_FALSE(parse_answer(reply(kA, 1), 8, "www.example", Type::A));
    EXPECT_FALSE(parse_answer(reply(kA, 1), 7, "www.example.x", Type::A));
    EXPECT_FALSE(parse_answer(reply(kA, 1), 7, "www.example", Type::Aaaa));
    EXPECT_FALSE(parse_answer(reply(kA, 2), 7, "www.example", Type::A));
    EXPECT_FALSE(
        parse_answer(encode_question(7, "www.example", Type::A), 7, "www.example", Type::A));
    EXPECT_EQ(parse_answer(reply("", 0, 0x83), 7, "www.example", Type::A)->code, Code::NoSuchName);
}

TEST(DnsMessage, RefusesWhatIsNoQuestion) {
    const std::string good = encode_question(1, "a.b", Type::A);
    for (size_t size = 0; size + 1 < good.size(); ++size) {
        EXPECT_FALSE(parse_question(std::string_view(good).substr(0, size))) << size;
    }
    std::string two = good;
    two[5] = 2;
    EXPECT_FALSE(parse_question(two));
    std::string update = good;
    update[2] = 0x28;
    EXPECT_FALSE(parse_question(update));
    const std::string header = good.substr(0, 12);
    EXPECT_FALSE(parse_question(header + "\xc0\x0c\0\x01\0\x01"s)) << "a pointer to itself";
    EXPECT_FALSE(parse_question(header + "\x03"
                                         "a.b\0\0\x01\0\x01"s))
        << "a dot in a label";
    EXPECT_FALSE(parse_question(header + "\x80"
                                         "a\0\0\x01\0\x01"s));
}

TEST(DnsMessage, ABlockedNameSaysWhy) {
    const Question question = parse_question(encode_question(1, "a.b", Type::A)).value();
    const std::string answer =
        encode_answer(question, {.code = Code::NoSuchName, .blocked = true}, kUdpPlain);
    EXPECT_TRUE(answer.ends_with("\0\x0f\0\x02\0\x12"s));
    EXPECT_EQ(parse_answer(answer, 1, "a.b", Type::A)->code, Code::NoSuchName);
}

}  // namespace
}  // namespace cloister::egress::dns
