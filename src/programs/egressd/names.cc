#include "programs/egressd/names.h"

#include <algorithm>
#include <array>

#include "base/time.h"
#include "egress/host_name.h"
#include "os/net.h"

namespace cloister::egressd {
namespace {

namespace dns = egress::dns;

dns::Answer blocked() {
    return {.code = dns::Code::NoSuchName, .blocked = true};
}

bool has_long_label(std::string_view name) {
    while (!name.empty()) {
        const size_t length = std::min(name.find('.'), name.size());
        if (length > kLabelMaxInLookups) return true;
        name.remove_prefix(std::min(length + 1, name.size()));
    }
    return false;
}

// What the policy says to a name before anybody is asked.
egress::Verdict judge(const SandboxNet& net, const Result<std::string>& name) {
    if (!name) return {.rule = "no host name: " + name.error().message};
    if (has_long_label(*name)) return {.rule = "limit: a label that is too long"};
    return net.policy().judge_name(*name);
}

// Those addresses that the sandbox may connect to.
std::vector<IpAddress> filtered(const SandboxNet& net, const std::string& name,
                                const std::vector<IpAddress>& addresses, uint16_t port,
                                std::string& rule) {
    std::vector<IpAddress> out;
    for (const IpAddress& address : addresses) {
        const auto verdict = net.policy().judge({.name = name, .address = address, .port = port});
        if (!verdict.allowed) rule = verdict.rule;
        if (verdict.allowed && (address.is_v4() || os::has_route(address))) out.push_back(address);
    }
    return out;
}

void tell_denied(SandboxNet& net, std::string name, std::string rule) {
    net.tell(
        {.protocol = "dns", .name = std::move(name), .verdict = "denied", .rule = std::move(rule)});
}

Task<dns::Answer> look_up(std::shared_ptr<SandboxNet> net, std::string name, dns::Type type) {
    if (!net->may_look_up()) {
        tell_denied(*net, name, "limit: too many look-ups");
        co_return dns::Answer{.code = dns::Code::ServerFailed};
    }
    ++net->lookups();
    const auto found = co_await net->shared().resolver->resolve(name, type);
    --net->lookups();
    dns::Answer answer;
    if (!found) answer.code = dns::Code::ServerFailed;
    if (!found) co_return answer;
    answer.code = found->code;
    std::string rule;
    answer.addresses = filtered(*net, name, found->addresses, 0, rule);
    answer.ttl = std::min(found->ttl, kTtlMax);
    if (answer.addresses.empty() && !rule.empty()) tell_denied(*net, name, rule);
    for (const IpAddress& address : answer.addresses) net->pins().add(name, address, steady_ms());
    co_return answer;
}

Task<dns::Answer> answer_to(std::shared_ptr<SandboxNet> net, dns::Question question) {
    const auto name = egress::canonical_name(question.name);
    const auto verdict = judge(*net, name);
    if (!verdict.allowed) {
        tell_denied(*net, name ? *name : question.name, verdict.rule);
        co_return blocked();
    }
    const auto type = static_cast<dns::Type>(question.type);
    if (type != dns::Type::A && type != dns::Type::Aaaa) co_return dns::Answer{};
    co_return co_await look_up(net, *name, type);
}

Task<void> answer_datagram(std::shared_ptr<SandboxNet> net, std::shared_ptr<Descriptor> socket,
                           os::Datagram asked) {
    const auto question = dns::parse_question(asked.bytes);
    if (!question) co_return;
    const dns::Answer answer = co_await answer_to(net, *question);
    if (!socket->open()) co_return;
    const std::string bytes = dns::encode_answer(*question, answer, question->answer_max);
    (void)os::send_to(socket->fd(), bytes, asked.from);  // who is gone needs no answer
}

}  // namespace

Task<void> serve_names(std::shared_ptr<SandboxNet> net, std::shared_ptr<Descriptor> socket) {
    while (socket->open()) {
        auto asked = os::try_receive(socket->fd(), dns::kMessageMax);
        if (!asked) co_return;
        if (*asked) {
            spawn(answer_datagram(net, socket, std::move(**asked)));
        } else if (!co_await socket->readable()) {
            co_return;
        }
    }
}

Task<void> serve_names_over(std::shared_ptr<SandboxNet> net, std::shared_ptr<Descriptor> client) {
    std::string pending;
    for (;;) {
        std::array<char, dns::kMessageMax> buffer{};
        const auto got = os::try_read(client->fd(), buffer);
        if (!got || (*got && **got == 0)) co_return;
        if (!*got) {
            if (co_await client->readable_within(kOpeningTime) != Descriptor::Wait::Ready)
                co_return;
            continue;
        }
        pending.append(buffer.data(), **got);
        while (pending.size() >= 2) {
            const size_t length = static_cast<size_t>(static_cast<uint8_t>(pending[0])) << 8 |
                                  static_cast<uint8_t>(pending[1]);
            if (length > dns::kMessageMax) co_return;
            if (pending.size() < 2 + length) break;
            const auto question = dns::parse_question(std::string_view(pending).substr(2, length));
            pending.erase(0, 2 + length);
            if (!question) co_return;
            const dns::Answer answer = co_await answer_to(net, *question);
            const std::string bytes = dns::encode_answer(*question, answer, dns::kMessageMax);
            std::string out{static_cast<char>(bytes.size() >> 8),
                            static_cast<char>(bytes.size() & 0xff)};
            out += bytes;
            if (!client->open() || !os::try_write(client->fd(), out)) co_return;
        }
    }
}

Task<Result<std::vector<IpAddress>>> reachable_addresses(std::shared_ptr<SandboxNet> net,
                                                         std::string name, uint16_t port) {
    std::vector<IpAddress> out;
    std::string rule, failure = "the name has no address";
    for (const dns::Type type : {dns::Type::Aaaa, dns::Type::A}) {
        const auto found = co_await net->shared().resolver->resolve(name, type);
        if (!found) failure = found.error().message;
        if (!found) continue;
        for (const IpAddress& address : filtered(*net, name, found->addresses, port, rule))
            out.push_back(address);
    }
    if (!out.empty()) co_return out;
    if (!rule.empty()) co_return make_error(ErrorKind::PermissionDenied, rule);
    co_return make_error(ErrorKind::Unavailable, failure);
}

}  // namespace cloister::egressd
