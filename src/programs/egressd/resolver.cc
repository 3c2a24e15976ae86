#include "programs/egressd/resolver.h"

#include <algorithm>
#include <array>

#include "base/ids.h"
#include "base/time.h"
#include "loop/descriptor.h"
#include "os/net.h"
#include "os/tcp.h"

namespace cloister::egressd {
namespace {

namespace dns = egress::dns;

constexpr std::chrono::milliseconds kTry{2'000};
constexpr int kRounds = 2;
constexpr size_t kCacheMax = 4096;
constexpr int64_t kNothingMs = 5'000;  // that a name has no address is kept for
constexpr uint32_t kKeepSeconds = 300;

uint16_t random_id() {
    std::array<unsigned char, 2> bytes{};
    random_bytes(bytes);
    return static_cast<uint16_t>(bytes[0] << 8 | bytes[1]);
}

Error no_answer() {
    return make_error(ErrorKind::Unavailable, "no DNS server gave an answer");
}

struct Ask {
    uint16_t id = 0;
    std::string name;
    dns::Type type = dns::Type::A;
};

bool is_final(const dns::ServerAnswer& answer) {
    return answer.code == dns::Code::Ok || answer.code == dns::Code::NoSuchName;
}

// What does not answer our question is not looked at: anybody may send a datagram.
Task<Result<dns::ServerAnswer>> ask_by_udp(Endpoint server, Ask ask) {
    auto socket = os::connect_udp(server);
    if (!socket) co_return std::move(socket).error();
    auto io = Descriptor::adopt(std::move(*socket));
    if (!io) co_return std::move(io).error();
    const auto put = os::try_write(io->fd(), dns::encode_question(ask.id, ask.name, ask.type));
    if (!put) co_return put.error();
    const int64_t give_up = steady_ms() + kTry.count();
    while (steady_ms() < give_up) {
        const auto left = std::chrono::milliseconds(give_up - steady_ms());
        if (co_await io->readable_within(left) != Descriptor::Wait::Ready) break;
        std::array<char, dns::kMessageMax> buffer{};
        const auto got = os::try_read(io->fd(), buffer);
        if (!got) co_return got.error();
        if (!*got) continue;
        auto answer = dns::parse_answer({buffer.data(), **got}, ask.id, ask.name, ask.type);
        if (answer) co_return answer;
    }
    co_return no_answer();
}

Task<Result<std::string>> read_exactly(Descriptor& io, size_t bytes, int64_t give_up) {
    std::string out;
    while (out.size() < bytes) {
        std::array<char, dns::kMessageMax> buffer{};
        const size_t most = std::min(buffer.size(), bytes - out.size());
        const auto got = os::try_read(io.fd(), std::span(buffer).first(most));
        if (!got) co_return got.error();
        if (*got && **got == 0) co_return no_answer();
        if (*got) out.append(buffer.data(), **got);
        const auto left = std::chrono::milliseconds(std::max<int64_t>(1, give_up - steady_ms()));
        if (!*got && co_await io.readable_within(left) != Descriptor::Wait::Ready)
            co_return no_answer();
    }
    co_return out;
}

Task<Result<dns::ServerAnswer>> ask_by_tcp(Endpoint server, Ask ask) {
    auto socket = os::begin_connect(server);
    if (!socket) co_return std::move(socket).error();
    auto io = Descriptor::adopt(std::move(*socket));
    if (!io) co_return std::move(io).error();
    const int64_t give_up = steady_ms() + 2 * kTry.count();
    if (co_await io->writable_within(kTry) != Descriptor::Wait::Ready) co_return no_answer();
    if (auto made = os::connect_result(io->fd()); !made) co_return std::move(made).error();
    const std::string question = dns::encode_question(ask.id, ask.name, ask.type);
    std::string message{static_cast<char>(question.size() >> 8),
                        static_cast<char>(question.size() & 0xff)};
    message += question;
    if (auto put = os::try_write(io->fd(), message); !put) co_return std::move(put).error();
    const auto length = co_await read_exactly(*io, 2, give_up);
    if (!length) co_return length.error();
    const size_t size = static_cast<size_t>(static_cast<uint8_t>((*length)[0])) << 8 |
                        static_cast<uint8_t>((*length)[1]);
    const auto answer = co_await read_exactly(*io, size, give_up);
    if (!answer) co_return answer.error();
    co_return dns::parse_answer(*answer, ask.id, ask.name, ask.type);
}

Task<Result<dns::ServerAnswer>> ask_server(Endpoint server, Ask ask) {
    auto answer = co_await ask_by_udp(server, ask);
    if (answer && answer->truncated) answer = co_await ask_by_tcp(server, ask);
    co_return answer;
}

}  // namespace

Task<Result<dns::ServerAnswer>> Resolver::resolve(std::string name, dns::Type type) {
    const Key key{name, type};
    const auto cached = cache_.find(key);
    if (cached != cache_.end() && cached->second.until_ms > steady_ms())
        co_return cached->second.answer;
    for (int round = 0; round < kRounds; ++round) {
        for (const Endpoint& server : servers_) {
            Ask ask{.id = random_id(), .name = name, .type = type};
            const auto answer = co_await ask_server(server, std::move(ask));
            if (!answer || !is_final(*answer)) continue;
            keep(key, *answer);
            co_return *answer;
        }
    }
    co_return no_answer();
}

void Resolver::keep(const Key& key, const dns::ServerAnswer& answer) {
    if (cache_.size() >= kCacheMax) cache_.clear();
    const int64_t keep_ms =
        answer.addresses.empty() ? kNothingMs : int64_t{std::min(answer.ttl, kKeepSeconds)} * 1000;
    if (keep_ms > 0) cache_[key] = {.answer = answer, .until_ms = steady_ms() + keep_ms};
}

std::vector<Endpoint> servers_of(std::string_view resolv_conf) {
    constexpr uint16_t kPort = 53;
    std::vector<Endpoint> out;
    while (!resolv_conf.empty()) {
        const size_t end = std::min(resolv_conf.find('\n'), resolv_conf.size());
        std::string_view line = resolv_conf.substr(0, end);
        resolv_conf.remove_prefix(std::min(end + 1, resolv_conf.size()));
        constexpr std::string_view kWord = "nameserver";
        if (!line.starts_with(kWord)) continue;
        line.remove_prefix(kWord.size());
        const size_t from = line.find_first_not_of(" \t");
        if (from == std::string_view::npos || from == 0) continue;
        line = line.substr(from, line.find_first_of(" \t\r", from) - from);
        if (const auto address = parse_address(line)) out.push_back({*address, kPort});
    }
    return out;
}

}  // namespace cloister::egressd
