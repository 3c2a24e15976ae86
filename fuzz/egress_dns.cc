// DNS messages of sandboxes and of servers.
#include "egress/dns_message.h"
#include "egress/host_name.h"
#include "fuzz.h"

using namespace cloister;
using namespace cloister::egress;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view bytes = fuzz::text_of(data, size);
    if (const auto question = dns::parse_question(bytes)) {
        EXPECT(question->answer_max >= dns::kUdpPlain);
        dns::Answer answer{.ttl = 1};
        const bool v4 = question->type == static_cast<uint16_t>(dns::Type::A);
        const bool v6 = question->type == static_cast<uint16_t>(dns::Type::Aaaa);
        if (v4) answer.addresses.assign(3, *parse_address("203.0.113.1"));
        if (v6) answer.addresses.assign(3, *parse_address("2001:db8::1"));
        const std::string out = dns::encode_answer(*question, answer, dns::kMessageMax);
        EXPECT(out.size() <= dns::kMessageMax);
        if (v4 || v6) {
            const auto type = static_cast<dns::Type>(question->type);
            const auto again = dns::parse_answer(out, question->id, question->name, type);
            EXPECT(again && again->addresses == answer.addresses);
        }
    }
    for (const dns::Type type : {dns::Type::A, dns::Type::Aaaa}) {
        const auto answer = dns::parse_answer(bytes, 7, "www.example", type);
        if (answer && answer->addresses.empty()) EXPECT(answer->ttl == 0);
    }
    return 0;
}
