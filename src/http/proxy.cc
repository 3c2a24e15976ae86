#include "http/proxy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/limits.h"
#include "http/answer_parser.h"

namespace cloister::http {
namespace {

constexpr std::array<std::string_view, 9> kHopByHop = {"Connection",
                                                       "Keep-Alive",
                                                       "Proxy-Authenticate",
                                                       "Proxy-Authorization",
                                                       "Proxy-Connection",
                                                       "TE",
                                                       "Trailer",
                                                       "Transfer-Encoding",
                                                       "Upgrade"};
// Answers before the answer.
constexpr int kInformationalMax = 8;

bool same(std::string_view a, std::string_view b) {
    return !CaseLess{}(a, b) && !CaseLess{}(b, a);
}

bool wants_upgrade(const Request& request) {
    return !request.header("Upgrade").empty() && has_word(request.header("Connection"), "upgrade");
}

// A name or value that would break out of its line cannot come from our parser; a client's obsolete
// line folding must not get through, either.
bool is_one_line(std::string_view text) {
    return text.find_first_of("\r\n") == std::string_view::npos &&
           text.find('\0') == std::string_view::npos;
}

// Without a body nothing may follow the head: the server would take it for another request.
bool has_body(const Request& request) {
    return request.content_length().value_or(0) > 0 || !request.header("Transfer-Encoding").empty();
}

std::string request_head(const Request& request, const ProxyPlan& plan) {
    std::string out =
        fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\n", request.method(), plan.target, plan.host);
    const auto is_hidden = [&plan](std::string_view name) {
        return std::ranges::any_of(plan.hidden, [name](const auto& h) { return same(h, name); }) ||
               plan.added.contains(name);
    };
    for (const auto& [name, value] : request.headers()) {
        if (same(name, "Host") || same(name, "Expect") || same(name, "Content-Length")) continue;
        if (is_hop_by_hop(name, request.headers()) || is_hidden(name)) continue;
        if (is_one_line(name) && is_one_line(value)) out += fmt::format("{}: {}\r\n", name, value);
    }
    for (const auto& [name, value] : plan.added) {
        if (is_one_line(value)) out += fmt::format("{}: {}\r\n", name, value);
    }
    if (wants_upgrade(request)) {
        return out +
               fmt::format("Connection: Upgrade\r\nUpgrade: {}\r\n\r\n", request.header("Upgrade"));
    }
    if (const auto length = request.content_length()) {
        out += fmt::format("Content-Length: {}\r\n", *length);
    } else if (!request.header("Transfer-Encoding").empty()) {
        out += "Transfer-Encoding: chunked\r\n";
    }
    return out + "Connection: close\r\n\r\n";
}

// What the two directions of one request share. It lives until both are done.
struct Exchange {
    Request& request;
    std::shared_ptr<Upstream> upstream;
    bool sending = true;
    Signal sent;
};

Task<Result<void>> send_body(Exchange& exchange) {
    const bool chunked = !exchange.request.content_length();
    for (;;) {
        Result<std::string> piece = co_await exchange.request.read_some(limits::kStreamChunk);
        if (!piece) co_return std::move(piece).error();
        const bool last = piece->empty();
        std::string bytes = std::move(*piece);
        if (chunked) bytes = fmt::format("{:x}\r\n", bytes.size()) + bytes + "\r\n";
        if (last && !chunked) co_return Result<void>{};
        const Result<void> written = co_await exchange.upstream->write(std::move(bytes));
        if (!written || last) co_return written;
    }
}

Task<void> pump_body(std::shared_ptr<Exchange> exchange) {
    const Result<void> sent = co_await send_body(*exchange);
    // A body that breaks off must not look whole. (A server that stops reading may still answer.)
    const bool of_client = !sent && sent.error().kind != ErrorKind::Unavailable;
    if (of_client) exchange->upstream->close();
    exchange->sending = false;
    exchange->sent.notify_all();
}

Task<Result<AnswerHead>> read_head(Upstream& upstream, AnswerParser& parser) {
    for (;;) {
        Result<std::optional<AnswerHead>> head = parser.head();
        if (!head) co_return std::move(head).error();
        if (*head) co_return std::move(**head);
        const Result<std::string> bytes = co_await upstream.read_some();
        if (!bytes) co_return bytes.error();
        parser.feed(*bytes);
        if (bytes->empty()) parser.end_of_input();
    }
}

// Answers before the answer (100 Continue, 103 Early Hints) are for us alone.
Task<Result<AnswerHead>> read_final_head(Upstream& upstream, AnswerParser& parser) {
    for (int i = 0; i < kInformationalMax; ++i) {
        Result<AnswerHead> head = co_await read_head(upstream, parser);
        if (!head || head->status >= 200 || head->status == 101) co_return head;
        parser.start_again();
    }
    co_return make_error(ErrorKind::Unavailable, "the server gave no answer");
}

// Of the client's own path, where the server names one of its.
std::string location_of(std::string_view value, const ProxyPlan& plan) {
    const bool path = value.starts_with('/') && !value.starts_with("//");
    return (path ? plan.prefix : std::string()) + std::string(value);
}

Headers headers_for_client(const AnswerHead& head, const ProxyPlan& plan) {
    Headers out;
    for (const auto& [name, value] : head.headers) {
        if (same(name, "Content-Length") || same(name, "Date")) continue;
        if (is_hop_by_hop(name, head.headers) || !is_one_line(name)) continue;
        out.emplace(name, same(name, "Location") ? location_of(value, plan) : value);
    }
    return out;
}

std::optional<uint64_t> length_of(const AnswerHead& head) {
    const auto found = head.headers.find("Content-Length");
    if (found == head.headers.end() || head.headers.contains("Transfer-Encoding")) {
        return std::nullopt;
    }
    uint64_t length = 0;
    const std::string& text = found->second;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), length);
    if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return length;
}

Task<Result<void>> pass_body(Upstream& upstream, AnswerParser& parser, Response& response) {
    for (;;) {
        Result<std::string> piece = parser.body();
        if (!piece) co_return std::move(piece).error();
        if (!piece->empty()) {
            Result<void> written = co_await response.write(std::move(*piece));
            if (!written) co_return written;
            continue;
        }
        if (parser.done()) co_return co_await response.finish();
        const Result<std::string> bytes = co_await upstream.read_some();
        if (!bytes) co_return bytes.error();
        parser.feed(*bytes);
        if (bytes->empty()) parser.end_of_input();
    }
}

// --- Another protocol ---

Task<void> pump_client(std::shared_ptr<RawConnection> client, std::shared_ptr<Upstream> upstream) {
    for (;;) {
        Result<std::string> bytes = co_await client->read_some();
        if (!bytes || bytes->empty()) break;
        const Result<void> written = co_await upstream->write(std::move(*bytes));
        if (!written) break;
    }
    upstream->close();
}

Task<Result<int>> pass_bytes(const AnswerHead& head, AnswerParser& parser, Response& response,
                             std::shared_ptr<Upstream> upstream) {
    Headers headers;
    for (const auto& [name, value] : head.headers) {
        const bool kept =
            same(name, "Connection") || same(name, "Upgrade") || !is_hop_by_hop(name, head.headers);
        if (kept) headers.emplace(name, value);
    }
    const auto client = co_await response.switch_protocols(std::move(headers));
    if (!client) co_return client.error();
    spawn(pump_client(*client, upstream));
    Result<std::string> bytes = parser.take_rest();
    while (bytes) {
        if (!bytes->empty()) {
            const Result<void> written = co_await (*client)->write(std::move(*bytes));
            if (!written) break;
        }
        bytes = co_await upstream->read_some();
        if (bytes && bytes->empty()) break;
    }
    upstream->close();
    response.abort();
    co_return 101;
}

Task<Result<int>> pass_answer(Response& response, std::shared_ptr<Upstream> upstream,
                              const ProxyPlan& plan, bool upgrade) {
    AnswerParser parser;
    const Result<AnswerHead> head = co_await read_final_head(*upstream, parser);
    if (!head) co_return head.error();
    if (head->status == 101 && upgrade) {
        co_return co_await pass_bytes(*head, parser, response, upstream);
    }
    Headers headers = headers_for_client(*head, plan);
    if (head->status == 204 || head->status == 304) {
        (void)co_await response.send(head->status, std::move(headers), {});
        co_return head->status;
    }
    const auto begun = co_await response.start(head->status, std::move(headers), length_of(*head));
    if (!begun) co_return head->status;  // the client is gone
    const Result<void> passed = co_await pass_body(*upstream, parser, response);
    if (!passed) response.abort();
    co_return head->status;
}

}  // namespace

bool is_hop_by_hop(std::string_view name, const Headers& headers) {
    if (std::ranges::any_of(kHopByHop, [name](auto known) { return same(known, name); })) {
        return true;
    }
    const auto [begin, end] = headers.equal_range("Connection");
    return std::any_of(begin, end,
                       [name](const auto& header) { return has_word(header.second, name); });
}

Task<Result<int>> proxy(Request& request, Response& response, std::shared_ptr<Upstream> upstream,
                        ProxyPlan plan) {
    const bool upgrade = wants_upgrade(request);
    response.on_disconnect([upstream] { upstream->close(); });
    const Result<void> sent = co_await upstream->write(request_head(request, plan));
    if (!sent) co_return sent.error();
    const auto exchange = std::make_shared<Exchange>(request, upstream);
    exchange->sending = !upgrade && has_body(request);
    if (exchange->sending) spawn(pump_body(exchange));
    Result<int> answered = co_await pass_answer(response, upstream, plan, upgrade);
    // The request must outlive who reads from it; a server that has answered wants no more of it.
    upstream->close();
    while (exchange->sending) co_await exchange->sent.wait();
    co_return answered;
}

}  // namespace cloister::http
