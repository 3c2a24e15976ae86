#include "programs/egressd/stream.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include "base/time.h"
#include "os/net.h"
#include "os/tcp.h"
#include "programs/egressd/names.h"
#include "programs/egressd/pipe_pool.h"

namespace cloister::egressd {
namespace {

constexpr size_t kSpliceMost = 1 << 20;
constexpr size_t kReadMost = 64 * 1024;

Error gone() {
    return make_error(ErrorKind::Cancelled, "closed");
}

// One direction's pipe: taken when bytes are there, given back when they are through.
class Pipe {
  public:
    explicit Pipe(PipePool& pool) : pool_(pool) {}
    ~Pipe() {
        if (held_ == 0) pool_.put_back(std::move(pipe_));
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;

    os::Moved fill(const os::Fd& from) {
        if (!pipe_.read.open()) pipe_ = TRY(pool_.take());
        auto moved = os::try_splice(from, pipe_.write, kSpliceMost);
        if (moved && *moved) held_ += **moved;
        if (held_ == 0) give_back();
        return moved;
    }
    os::Moved empty(const os::Fd& to) {
        auto moved = os::try_splice(pipe_.read, to, held_);
        if (moved && *moved) held_ -= **moved;
        return moved;
    }
    size_t held() const { return held_; }

  private:
    void give_back() { pool_.put_back(std::exchange(pipe_, {})); }
    PipePool& pool_;
    os::Pipe pipe_;
    size_t held_ = 0;
};

Task<Result<void>> drain(Pipe& pipe, std::shared_ptr<Descriptor> to) {
    while (pipe.held() > 0) {
        if (!to->open()) co_return gone();
        const auto moved = pipe.empty(to->fd());
        if (!moved) co_return moved.error();
        if (!*moved && !co_await to->writable()) co_return gone();
    }
    co_return Result<void>{};
}

// Of the one thread that carries streams; used up before it does something else.
std::span<char> read_buffer() {
    static std::array<char, kReadMost> buffer;
    return buffer;
}

PipePool& pipes() {
    static PipePool pool;
    return pool;
}

}  // namespace

Stream::Stream(std::shared_ptr<SandboxNet> net, std::shared_ptr<Descriptor> client,
               const Endpoint& wanted)
    : net_(std::move(net)),
      client_(std::move(client)),
      wanted_(wanted),
      began_ms_(steady_ms()),
      moved_ms_(began_ms_) {}

Result<std::shared_ptr<Stream>> Stream::create(std::shared_ptr<SandboxNet> net, os::Fd client,
                                               const Endpoint& wanted) {
    Descriptor io = TRY(Descriptor::adopt(std::move(client)));
    return std::shared_ptr<Stream>(
        new Stream(std::move(net), std::make_shared<Descriptor>(std::move(io)), wanted));
}

Task<void> Stream::run(std::shared_ptr<Stream> self) {
    if (is_resolver(self->wanted_)) {
        co_await serve_names_over(self->net_, self->client_);
        self->end("closed");
    } else {
        co_await self->carry();
    }
}

Task<void> Stream::carry() {
    const auto self = shared_from_this();
    const auto route = co_await find_route();
    if (!route) {
        const egress::Verdict verdict{.rule = route.error().message};
        // Who connects and leaves without a word is no event.
        if (route.error().kind == ErrorKind::Cancelled) co_return end("closed");
        co_return refuse(verdict, "denied");
    }
    if (!route->verdict.allowed) co_return refuse(route->verdict, "denied");
    auto made = co_await dial(route->to);
    if (ended_) co_return;
    if (made && !judge_now().allowed)
        made = make_error(ErrorKind::Cancelled, "the policy has changed");
    if (!made) {
        const egress::Verdict verdict{.rule = made.error().message};
        const bool denied = made.error().kind == ErrorKind::PermissionDenied;
        co_return refuse(verdict, denied ? "denied" : "failed");
    }
    tell(route->verdict, "allowed");
    open_directions_ = 2;
    if (opening_.kind == Opening::Kind::Http) {
        spawn(pump_requests(self));
        spawn(pump_answers(self));
        co_return;
    }
    if (const auto passed = co_await pass_on(opening_.bytes); !passed) co_return end("reset");
    opening_.bytes = {};
    spawn(pump(self, Direction{.from = client_, .to = server_, .bytes = sent_}));
    spawn(pump(self, Direction{.from = server_, .to = client_, .bytes = received_}));
}

// --- Where to ---

Task<Result<Stream::Route>> Stream::find_route() {
    const auto self = shared_from_this();
    const egress::Target address{.name = {}, .address = wanted_.address, .port = wanted_.port};
    egress::Verdict direct = net_->policy().judge(address);
    // What the client says could not change these.
    const bool settled = direct.allowed ? direct.basis <= egress::Basis::Network
                                        : direct.basis == egress::Basis::Platform ||
                                              direct.basis == egress::Basis::Mode;
    if (settled) {
        Route route{.verdict = direct};
        route.to = with_others(net_->pins().names_of(wanted_.address, steady_ms()));
        co_return route;
    }
    auto opening = co_await read_opening(client_);
    if (!opening) co_return std::move(opening).error();
    opening_ = std::move(*opening);
    if (opening_.kind == Opening::Kind::Unclear)
        co_return make_error(ErrorKind::InvalidArgument, opening_.unclear);
    if (!opening_.name.empty()) co_return co_await route_to_name();
    if (opening_.kind == Opening::Kind::Other) co_return route_by_names();
    direct = net_->policy().judge(address);
    co_return Route{.verdict = direct, .to = {wanted_}};
}

// The client named nobody: whatever it may mean must be allowed.
Stream::Route Stream::route_by_names() const {
    const auto names = net_->pins().names_of(wanted_.address, steady_ms());
    Route route{.verdict = net_->policy().judge({{}, wanted_.address, wanted_.port}),
                .to = with_others(names)};
    for (const std::string& name : names) {
        route.verdict = net_->policy().judge({name, wanted_.address, wanted_.port});
        if (!route.verdict.allowed) break;
    }
    return route;
}

// The address that the client chose counts only where every address is allowed anyway.
Task<Stream::Route> Stream::route_to_name() {
    const auto self = shared_from_this();
    Route route{.verdict = net_->policy().judge_name(opening_.name)};
    if (!route.verdict.allowed) co_return route;
    const auto chosen = net_->policy().judge({opening_.name, wanted_.address, wanted_.port});
    if (chosen.allowed && chosen.basis != egress::Basis::Name) {
        route = {.verdict = chosen, .to = with_others({opening_.name})};
        co_return route;
    }
    const auto found = co_await reachable_addresses(net_, opening_.name, wanted_.port);
    if (!found) {
        route.verdict = {.rule = found.error().message};
        co_return route;
    }
    for (const IpAddress& address : *found) route.to.push_back({address, wanted_.port});
    co_return route;
}

// Where the client wanted to go, then the other addresses of the same name: its own second try
// cannot come, since its connection is made already.
std::vector<Endpoint> Stream::with_others(const std::vector<std::string>& names) const {
    std::vector<Endpoint> out = {wanted_};
    if (names.size() != 1) return out;
    for (const IpAddress& other : net_->pins().addresses_of(names.front(), steady_ms())) {
        const bool allowed = net_->policy().judge({names.front(), other, wanted_.port}).allowed;
        if (allowed && other != wanted_.address) out.push_back({other, wanted_.port});
    }
    return out;
}

Task<Result<void>> Stream::dial(std::vector<Endpoint> to) {
    const auto self = shared_from_this();
    Error failure = make_error(ErrorKind::Unavailable, "there is nothing to connect to");
    for (size_t i = 0; i < to.size() && !ended_; ++i) {
        dialled_ = to[i];
        const auto most = i + 1 < to.size() ? kDialOne : kDialLast;
        Result<void> made;
        if (net_->is_host(to[i].address)) {
            made = make_error(ErrorKind::PermissionDenied, "platform: an address of the host");
        } else if (net_->shared().upstream) {
            made = co_await dial_upstream(*net_->shared().upstream, to[i]);
        } else {
            made = co_await dial_one(to[i], most);
        }
        if (made || ended_) co_return made;
        failure = std::move(made).error();
    }
    co_return failure;
}

Task<Result<void>> Stream::dial_one(Endpoint to, std::chrono::milliseconds most) {
    const auto self = shared_from_this();
    auto connection = os::begin_connect(to);
    if (!connection) co_return std::move(connection).error();
    auto io = Descriptor::adopt(std::move(*connection));
    if (!io) co_return std::move(io).error();
    server_ = std::make_shared<Descriptor>(std::move(*io));
    const auto wait = co_await server_->writable_within(most);
    if (ended_) co_return gone();
    auto made = os::connect_result(server_->fd());
    if (wait == Descriptor::Wait::TimedOut) made = os_failure("connecting", ETIMEDOUT);
    if (!made) {
        server_->close();
        server_.reset();
    }
    co_return made;
}

// The operator's proxy is asked for the name that was judged, or for the address of one without.
Task<Result<void>> Stream::dial_upstream(egress::Upstream upstream, Endpoint to) {
    const auto self = shared_from_this();
    Endpoint proxy{.address = {}, .port = upstream.port};
    if (const auto* address = std::get_if<IpAddress>(&upstream.host)) {
        proxy.address = *address;
    } else {
        const std::string name = std::get<std::string>(upstream.host);
        const auto found = co_await net_->shared().resolver->resolve(name, egress::dns::Type::A);
        if (!found) co_return found.error();
        if (found->addresses.empty())
            co_return make_error(ErrorKind::Unavailable, "the upstream proxy has no address");
        proxy.address = found->addresses.front();
    }
    auto made = co_await dial_one(proxy, kDialLast);
    if (!made) co_return std::move(made).error().within("the upstream proxy");
    const std::string host = opening_.name.empty() ? to.address.text() : opening_.name;
    egress::Handshake handshake(upstream, host, to.port);
    co_return co_await greet_upstream(std::move(handshake));
}

Task<Result<void>> Stream::greet_upstream(egress::Handshake handshake) {
    const auto self = shared_from_this();
    std::string send = handshake.begin();
    for (;;) {
        if (ended_) co_return gone();
        const auto put = os::try_write(server_->fd(), send);
        if (!put) co_return put.error();
        send.clear();
        if (co_await server_->readable_within(kDialLast) != Descriptor::Wait::Ready)
            co_return os_failure("the upstream proxy", ETIMEDOUT);
        std::array<char, 4096> buffer{};
        const auto got = os::try_read(server_->fd(), buffer);
        if (!got) co_return got.error();
        if (*got && **got == 0) co_return os_failure("the upstream proxy", ECONNRESET);
        const auto done = handshake.feed({buffer.data(), got->value_or(0)});
        if (!done) co_return done.error();
        if (*done) co_return Result<void>{};
        send = handshake.take_reply();
    }
}

// --- Carrying ---

Task<Result<void>> Stream::pass_on(std::string_view bytes) {
    const auto self = shared_from_this();
    while (!bytes.empty()) {
        if (ended_) co_return gone();
        const auto put = os::try_write(server_->fd(), bytes);
        if (!put) co_return put.error();
        if (*put) {
            bytes.remove_prefix(**put);
            sent_ += **put;
            moved_ms_ = steady_ms();
        } else if (!co_await server_->writable()) {
            co_return gone();
        }
    }
    co_return Result<void>{};
}

Task<void> Stream::pump(std::shared_ptr<Stream> self, Direction direction) {
    Pipe pipe(pipes());
    for (;;) {
        if (self->ended_) co_return;
        const auto moved = pipe.fill(direction.from->fd());
        if (!moved) co_return self->direction_ended(moved.error());
        if (!*moved) {
            if (!co_await direction.from->readable()) co_return;
            continue;
        }
        if (**moved == 0) break;
        direction.bytes += **moved;
        self->moved_ms_ = steady_ms();
        const auto drained = co_await drain(pipe, direction.to);
        if (!drained) co_return self->direction_ended(drained.error());
        co_await self->net_->pay(**moved);
    }
    if (self->ended_) co_return;
    os::shutdown_write(direction.to->fd());
    self->direction_ended({});
}

// Plain HTTP is read all the way: a later request may be for another host.
Task<void> Stream::pump_requests(std::shared_ptr<Stream> self) {
    auto taken = co_await self->take_requests(std::exchange(self->opening_.bytes, {}));
    while (taken && !self->ended_) {
        if (self->upgrade_ == Upgrade::Agreed)
            co_return co_await pump(self, Direction{self->client_, self->server_, self->sent_});
        const auto got = os::try_read(self->client_->fd(), read_buffer());
        if (!got) taken = got.error();
        if (!got) break;
        if (!*got) {
            if (!co_await self->client_->readable()) co_return;
            continue;
        }
        if (**got == 0) break;
        std::string bytes(read_buffer().data(), **got);
        co_await self->net_->pay(bytes.size());
        taken = co_await self->take_requests(std::move(bytes));
    }
    if (self->ended_) co_return;
    if (taken) os::shutdown_write(self->server_->fd());
    self->direction_ended(taken);
}

Task<Result<void>> Stream::take_requests(std::string bytes) {
    const auto self = shared_from_this();
    std::string_view rest = bytes;
    while (!rest.empty()) {
        if (ended_) co_return gone();
        const auto step = requests_.next(rest);
        if (!step) co_return step.error();
        const bool head = step->kind == egress::HttpRequests::Step::Kind::Head;
        const auto good = head ? judge_head() : Result<void>{};
        if (!good) co_return good;
        const auto passed = co_await pass_on(step->forward);
        if (!passed) co_return passed;
        rest.remove_prefix(step->used);
        if (!head || upgrade_ != Upgrade::Asked) continue;
        // What follows is another protocol, if the server agrees.
        while (upgrade_ == Upgrade::Asked && !ended_) co_await upgrade_settled_.wait();
        if (upgrade_ == Upgrade::Agreed) co_return co_await pass_on(rest);
    }
    co_return Result<void>{};
}

// Every request of a connection is for the host of the first.
Result<void> Stream::judge_head() {
    const egress::HttpHead& head = requests_.head();
    const auto* name = std::get_if<std::string>(&head.host);
    const bool first = upgrade_ == Upgrade::None && sent_ == 0;
    const std::string now = name == nullptr ? std::string() : *name;
    if (now != opening_.name)
        return make_error(ErrorKind::PermissionDenied,
                          "a request for another host on the same connection: " + now);
    if (head.upgrade && !first)
        return make_error(ErrorKind::PermissionDenied,
                          "another protocol is asked for in the middle of a connection");
    if (head.upgrade) upgrade_ = Upgrade::Asked;
    return {};
}

Task<void> Stream::pump_answers(std::shared_ptr<Stream> self) {
    if (self->requests_.head().upgrade || self->upgrade_ == Upgrade::Asked) {
        // The first words of the answer decide what the client may send next.
        constexpr std::string_view kAgreed = "HTTP/1.1 101";
        std::string answer;
        while (answer.size() < kAgreed.size()) {
            if (self->ended_) co_return;
            const auto got = os::try_read(self->server_->fd(), read_buffer());
            if (!got || (*got && **got == 0)) break;
            if (*got) answer.append(read_buffer().data(), **got);
            if (!*got && !co_await self->server_->readable()) co_return;
        }
        self->upgrade_ = answer.starts_with(kAgreed) ? Upgrade::Agreed : Upgrade::Refused;
        self->upgrade_settled_.notify_all();
        std::string_view rest = answer;
        while (!rest.empty() && !self->ended_) {
            const auto put = os::try_write(self->client_->fd(), rest);
            if (!put) co_return self->direction_ended(put.error());
            if (*put) rest.remove_prefix(**put);
            if (!*put && !co_await self->client_->writable()) co_return;
        }
        self->received_ += answer.size();
    }
    if (self->ended_) co_return;
    co_await pump(self, Direction{self->server_, self->client_, self->received_});
}

// --- The end ---

void Stream::direction_ended(const Result<void>& how) {
    if (ended_) return;
    const bool refused = !how && (how.error().kind == ErrorKind::PermissionDenied ||
                                  how.error().kind == ErrorKind::InvalidArgument);
    if (refused) {
        const egress::Verdict verdict{.rule = how.error().message};
        tell(verdict, "denied");
        return cut("cut: " + verdict.rule);
    }
    if (!how) return cut("reset");
    if (--open_directions_ == 0) end("closed");
}

egress::Verdict Stream::judge_now() const {
    const egress::PolicyStack& policy = net_->policy();
    egress::Verdict verdict = policy.judge({opening_.name, dialled_.address, dialled_.port});
    if (verdict.allowed || !opening_.name.empty()) return verdict;
    // One that named nobody is carried by the names of the address that it chose.
    for (const std::string& name : net_->pins().names_of(wanted_.address, steady_ms())) {
        verdict = policy.judge({name, dialled_.address, dialled_.port});
        if (!verdict.allowed) break;
    }
    return verdict;
}

void Stream::judge_again() {
    if (ended_ || open_directions_ == 0) return;  // what is not carried yet is judged in time
    const egress::Verdict verdict = judge_now();
    if (!verdict.allowed) cut("cut: " + verdict.rule);
}

void Stream::expire(int64_t now_ms) {
    if (open_directions_ == 0) return;
    const int64_t most = open_directions_ == 1 ? kHalfClosedIdleMs : kIdleMs;
    if (now_ms - moved_ms_ > most) cut("idle");
}

void Stream::tell(const egress::Verdict& verdict, std::string_view word) {
    const Endpoint& at = dialled_.port != 0 ? dialled_ : wanted_;
    std::string name = opening_.name;
    const auto names = net_->pins().names_of(wanted_.address, steady_ms());
    if (name.empty() && names.size() == 1) name = names.front();
    const uint64_t id = net_->tell({.protocol = "tcp",
                                    .name = std::move(name),
                                    .address = at.address.text(),
                                    .port = at.port,
                                    .verdict = std::string(word),
                                    .rule = verdict.rule});
    if (word == "allowed") record_ = id;
}

void Stream::refuse(const egress::Verdict& verdict, std::string_view word) {
    if (ended_) return;
    tell(verdict, word);
    cut(verdict.rule);
}

void Stream::cut(std::string reason) {
    if (ended_) return;
    os::reset_on_close(client_->fd());
    if (server_ && server_->open()) os::reset_on_close(server_->fd());
    end(std::move(reason));
}

void Stream::end(std::string reason) {
    if (std::exchange(ended_, true)) return;
    const auto self = shared_from_this();
    client_->close();
    if (server_) server_->close();
    upgrade_settled_.notify_all();
    net_->forget(self);
    net_->tell_end({.id = record_,
                    .sent = sent_,
                    .received = received_,
                    .duration_ms = steady_ms() - began_ms_,
                    .reason = std::move(reason)});
}

}  // namespace cloister::egressd
