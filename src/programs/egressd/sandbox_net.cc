#include "programs/egressd/sandbox_net.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/time.h"
#include "os/net.h"
#include "programs/egressd/datagrams.h"
#include "programs/egressd/names.h"
#include "programs/egressd/stream.h"
#include "wire/warden.h"

namespace cloister::egressd {
namespace {

constexpr std::chrono::milliseconds kSweepPause{5'000};

// Names and reasons may hold what others sent: the log is text.
std::string as_text(std::string bytes) {
    constexpr size_t kMost = 300;
    if (bytes.size() > kMost) bytes.resize(kMost);
    std::ranges::replace_if(bytes, [](char c) { return c < ' ' || c > '~'; }, '?');
    return bytes;
}

Result<std::shared_ptr<Descriptor>> watch(os::Fd fd) {
    Descriptor made = TRY(Descriptor::adopt(std::move(fd)));
    return std::make_shared<Descriptor>(std::move(made));
}

}  // namespace

Result<void> SandboxNet::open(std::vector<os::Fd> path) {
    if (path.size() <= warden::kPathNames)
        return make_error(ErrorKind::InvalidArgument, "a way out without its descriptors");
    close_path();
    link_ = std::move(path[warden::kPathLink]);
    tcp_ = TRY(watch(std::move(path[warden::kPathTcp])));
    names_ = TRY(watch(std::move(path[warden::kPathNames])));
    spawn(accept(shared_from_this(), tcp_));
    spawn(serve_names(shared_from_this(), names_));
    if (!std::exchange(sweeping_, true)) spawn(sweep(shared_from_this()));
    if (path.size() <= warden::kPathRawV4) return {};
    path.erase(path.begin(), path.begin() + warden::kPathUdp);
    datagrams_ = TRY(Datagrams::open(shared_from_this(), std::move(path)));
    return {};
}

void SandboxNet::close_path() {
    link_.reset();
    if (tcp_) tcp_->close();
    if (names_) names_->close();
    if (datagrams_) datagrams_->close();
    tcp_.reset();
    names_.reset();
    datagrams_.reset();
}

void SandboxNet::close() {
    closed_ = true;
    close_path();
    for (const auto& stream : std::set(streams_))
        stream->cut("the sandbox has no network any more");
}

void SandboxNet::set_policy(egress::PolicyStack policy) {
    policy_ = std::move(policy);
    for (const auto& stream : std::set(streams_)) stream->judge_again();
    if (datagrams_) datagrams_->judge_again();
}

Task<void> SandboxNet::accept(std::shared_ptr<SandboxNet> self, std::shared_ptr<Descriptor> tcp) {
    while (tcp->open()) {
        auto taken = os::accept_redirected(tcp->fd());
        if (!taken) {
            log_warn("a connection was not accepted", {{"error", taken.error().message}});
            co_await sleep_for(std::chrono::milliseconds(50));
            continue;
        }
        if (*taken) {
            self->take(std::move((*taken)->fd), (*taken)->wanted);
        } else if (!co_await tcp->readable()) {
            co_return;
        }
    }
}

void SandboxNet::take(os::Fd connection, const Endpoint& wanted) {
    std::string limit;
    if (streams_.size() >= kStreamsMax || shared_->streams >= kStreamsOfAllMax)
        limit = "limit: too many connections at a time";
    else if (!new_streams_.try_take(1, steady_ms()))
        limit = "limit: too many new connections";
    if (!limit.empty()) {
        os::reset_on_close(connection);
        tell({.protocol = "tcp",
              .address = wanted.address.text(),
              .port = wanted.port,
              .verdict = "denied",
              .rule = limit});
        return;
    }
    auto stream = Stream::create(shared_from_this(), std::move(connection), wanted);
    if (!stream) return log_warn("no stream", {{"error", stream.error().message}});
    streams_.insert(*stream);
    ++shared_->streams;
    spawn(Stream::run(*stream));
}

void SandboxNet::forget(const std::shared_ptr<Stream>& stream) {
    shared_->streams -= streams_.erase(stream);
}

Task<void> SandboxNet::sweep(std::shared_ptr<SandboxNet> self) {
    while (!self->closed_) {
        const int64_t now = steady_ms();
        for (const auto& stream : std::set(self->streams_)) stream->expire(now);
        if (self->datagrams_) self->datagrams_->expire(now);
        co_await sleep_for(kSweepPause);
    }
}

uint64_t SandboxNet::tell(Record record) {
    if (!records_.try_take(1, steady_ms())) return 0;
    record.id = ++shared_->last_record;
    record.sandbox = id_;
    record.name = as_text(std::move(record.name));
    record.rule = as_text(std::move(record.rule));
    record.at_ms = unix_ms();
    shared_->tell(record);
    return record.id;
}

void SandboxNet::tell_end(RecordEnd end) {
    end.sandbox = id_;
    end.reason = as_text(std::move(end.reason));
    if (end.id != 0) shared_->tell_end(end);
}

Task<void> SandboxNet::pay(size_t bytes) {
    const int64_t wait = bytes_.take(static_cast<double>(bytes), steady_ms());
    if (wait > 0) co_await sleep_for(std::chrono::milliseconds(wait));
}

bool SandboxNet::is_host(const IpAddress& address) const {
    return !shared_->platform->opens(address) && os::is_own_address(address);
}

bool SandboxNet::may_look_up() {
    return lookups_ < kLookupsAtOnce && new_lookups_.try_take(1, steady_ms());
}

}  // namespace cloister::egressd
