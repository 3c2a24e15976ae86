#include "programs/egressd/datagrams.h"

#include "base/time.h"
#include "os/net.h"

namespace cloister::egressd {

Result<std::shared_ptr<Datagrams>> Datagrams::open(std::shared_ptr<SandboxNet> net,
                                                   std::vector<os::Fd> path) {
    std::shared_ptr<Datagrams> out(new Datagrams(net));
    Descriptor udp = TRY(Descriptor::adopt(std::move(path[0])));
    out->udp_ = std::make_shared<Descriptor>(std::move(udp));
    out->raw_v4_ = std::move(path[1]);
    if (path.size() > 2) out->raw_v6_ = std::move(path[2]);
    spawn(serve(out, out->udp_));
    return out;
}

Task<void> Datagrams::serve(std::shared_ptr<Datagrams> self, std::shared_ptr<Descriptor> udp) {
    while (udp->open()) {
        const auto got = os::try_receive(udp->fd(), kDatagramMax);
        if (!got) co_return;
        const std::shared_ptr<SandboxNet> net = self->net_.lock();
        if (!net) co_return;
        if (*got) {
            const Ends ends{(*got)->from, (*got)->wanted};
            self->take(net, (*got)->bytes, ends);
            co_await net->pay((*got)->bytes.size());
        } else if (!co_await udp->readable()) {
            co_return;
        }
    }
}

void Datagrams::take(const std::shared_ptr<SandboxNet>& net, const std::string& bytes,
                     const Ends& ends) {
    auto found = flows_.find(ends);
    std::shared_ptr<Flow> flow = found == flows_.end() ? begin(net, ends) : found->second;
    if (!flow) return;
    flow->used_ms = steady_ms();
    flow->sent += bytes.size();
    (void)os::try_write(flow->socket->fd(), bytes);  // datagrams may be lost
}

std::shared_ptr<Datagrams::Flow> Datagrams::begin(const std::shared_ptr<SandboxNet>& net,
                                                  const Ends& ends) {
    const Endpoint& to = ends.second;
    auto verdict = net->policy().judge({.name = {}, .address = to.address, .port = to.port});
    if (verdict.allowed && net->is_host(to.address))
        verdict = {.rule = "platform: an address of the host"};
    if (flows_.size() >= kFlowsMax) verdict = {.rule = "limit: too many datagram flows"};
    auto socket = os::connect_udp(to);
    if (verdict.allowed && !socket) verdict = {.rule = socket.error().message};
    const uint64_t record = net->tell({.protocol = "udp",
                                       .address = to.address.text(),
                                       .port = to.port,
                                       .verdict = verdict.allowed ? "allowed" : "denied",
                                       .rule = verdict.rule});
    if (!verdict.allowed) return nullptr;
    auto io = Descriptor::adopt(std::move(*socket));
    if (!io) return nullptr;
    auto flow = std::make_shared<Flow>(
        Flow{.socket = std::make_shared<Descriptor>(std::move(*io)), .began_ms = steady_ms()});
    flow->record = record;
    flows_.emplace(ends, flow);
    spawn(answer(shared_from_this(), flow, ends));
    return flow;
}

Task<void> Datagrams::answer(std::shared_ptr<Datagrams> self, std::shared_ptr<Flow> flow,
                             Ends ends) {
    const os::Fd& raw = ends.first.address.is_v4() ? self->raw_v4_ : self->raw_v6_;
    while (flow->socket->open()) {
        const auto got = os::try_receive(flow->socket->fd(), kDatagramMax);
        if (!got) break;
        if (!*got) {
            if (!co_await flow->socket->readable()) co_return;
            continue;
        }
        flow->used_ms = steady_ms();
        flow->received += (*got)->bytes.size();
        if (!raw.open()) break;
        (void)os::send_as(raw, (*got)->bytes, ends.second, ends.first);  // may be lost
        const std::shared_ptr<SandboxNet> net = self->net_.lock();
        if (net) co_await net->pay((*got)->bytes.size());
    }
    self->end(ends, "closed");
}

void Datagrams::end(const Ends& ends, std::string reason) {
    const auto found = flows_.find(ends);
    if (found == flows_.end()) return;
    const std::shared_ptr<Flow> flow = found->second;
    flows_.erase(found);
    flow->socket->close();
    const std::shared_ptr<SandboxNet> net = net_.lock();
    if (!net) return;
    net->tell_end({.id = flow->record,
                   .sent = flow->sent,
                   .received = flow->received,
                   .duration_ms = steady_ms() - flow->began_ms,
                   .reason = std::move(reason)});
}

void Datagrams::judge_again() {
    const std::shared_ptr<SandboxNet> net = net_.lock();
    for (const auto& [ends, flow] : std::map(flows_)) {
        const Endpoint& to = ends.second;
        const auto verdict =
            net->policy().judge({.name = {}, .address = to.address, .port = to.port});
        if (!verdict.allowed || net->policy().mode() != egress::Mode::Open)
            end(ends, "cut: " + verdict.rule);
    }
}

void Datagrams::expire(int64_t now_ms) {
    for (const auto& [ends, flow] : std::map(flows_)) {
        if (now_ms - flow->used_ms > kFlowIdleMs) end(ends, "idle");
    }
}

void Datagrams::close() {
    if (udp_) udp_->close();
    for (const auto& [ends, flow] : std::map(flows_)) end(ends, "closed");
}

}  // namespace cloister::egressd
