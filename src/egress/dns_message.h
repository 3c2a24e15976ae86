// DNS messages (RFC 1035): the questions of sandboxes and our answers, our questions to a server
// and its answers. Sans I/O; every byte is foreign.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ip.h"
#include "base/result.h"

namespace cloister::egress::dns {

inline constexpr size_t kMessageMax = 4096;
inline constexpr size_t kUdpPlain = 512;  // for clients without EDNS

enum class Type : uint16_t { A = 1, Aaaa = 28, Cname = 5, Opt = 41, Https = 65 };
enum class Code : uint8_t {
    Ok = 0,
    BadFormat = 1,
    ServerFailed = 2,
    NoSuchName = 3,
    NotDone = 4,
    Refused = 5
};

struct Question {
    uint16_t id = 0;
    uint16_t type = 0;
    std::string name;  // as it was written, labels joined by dots; may hold any byte
    bool edns = false;
    size_t answer_max = kUdpPlain;
    bool recursion_desired = true;
};

// InvalidArgument for what is no query with exactly one question of class IN.
Result<Question> parse_question(std::string_view message);

// Our answer. `addresses` of the question's type; what does not fit makes it truncated. `blocked`
// adds the extended error 18, "prohibited".
struct Answer {
    Code code = Code::Ok;
    std::vector<IpAddress> addresses;
    uint32_t ttl = 0;
    bool blocked = false;
};
std::string encode_answer(const Question& question, const Answer& answer, size_t most);

// Our question to a server. `name` is canonical.
std::string encode_question(uint16_t id, std::string_view name, Type type);

struct ServerAnswer {
    Code code = Code::Ok;
    bool truncated = false;
    std::vector<IpAddress> addresses;
    uint32_t ttl = 0;  // the least of the chain
};
// The answer of a server to that question, along its chain of aliases. InvalidArgument for anything
// else.
Result<ServerAnswer> parse_answer(std::string_view message, uint16_t id, std::string_view name,
                                  Type type);

}  // namespace cloister::egress::dns
