#include "engine/network.h"

#include <ranges>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "base/time.h"
#include "egress/policy_json.h"

namespace cloister::engine {
namespace {

constexpr size_t kLogMax = limits::kNetworkLogMax;

warden::PathKind kind_of(egress::Mode mode) {
    switch (mode) {
        case egress::Mode::Filtered:
            return warden::PathKind::Tcp;
        case egress::Mode::Open:
            return warden::PathKind::TcpUdp;
        case egress::Mode::Disabled:
            break;
    }
    return warden::PathKind::None;
}

int64_t number_in(const json::object& object, std::string_view name) {
    const json::value* found = object.if_contains(name);
    return found != nullptr && found->is_int64() ? found->as_int64() : 0;
}

bool is_of_run(const json::object& line, std::string_view run) {
    const json::value* runs = line.if_contains("run_ids");
    if (runs == nullptr) return false;
    for (const json::value& one : runs->as_array()) {
        if (std::string_view(one.as_string()) == run) return true;
    }
    return false;
}

}  // namespace

warden::PathKind Network::wanted() const {
    return closed_ ? warden::PathKind::None : kind_of(policy_.mode);
}

json::array Network::policies() const {
    json::array out{egress::policy_json(policy_)};
    for (const auto& policy : held_ | std::views::values)
        out.push_back(egress::policy_json(policy));
    return out;
}

Task<Result<void>> Network::apply() {
    const auto self = shared_from_this();
    begun_ = true;
    while (applying_) co_await applied_.wait();
    applying_ = true;
    Result<void> done = co_await bring_up_to_date();
    applying_ = false;
    applied_.notify_all();
    co_return done;
}

Task<Result<void>> Network::bring_up_to_date() {
    const warden::PathKind kind = wanted();
    if (kind == warden::PathKind::None) co_return co_await detach();
    Result<void> there = co_await parts_.egress->connected();
    if (!there) co_return there;
    json::object message{{"op", "policy"}, {"sandbox", sandbox_}, {"policies", policies()}};
    if (attached_ == kind) {
        const auto done = co_await parts_.egress->ask(std::move(message));
        if (done) co_return Result<void>{};
        if (done.error().kind != ErrorKind::NotFound) co_return done.error();
        message = {{"op", "policy"}, {"sandbox", sandbox_}, {"policies", policies()}};
    }
    auto path = co_await parts_.warden->network(sandbox_, kind);
    if (!path) co_return std::move(path).error();
    message["op"] = "attach";
    message["fds"] = path->size();
    const auto done = co_await parts_.egress->ask(std::move(message), std::move(*path));
    if (!done) co_return done.error();
    attached_ = kind;
    co_return Result<void>{};
}

// Egress first: when it has let go, nothing is carried any more.
Task<Result<void>> Network::detach() {
    if (attached_ == warden::PathKind::None) co_return Result<void>{};
    if (parts_.egress->is_connected()) {
        const auto done = co_await parts_.egress->ask({{"op", "detach"}, {"sandbox", sandbox_}});
        if (!done && done.error().kind != ErrorKind::Unavailable) co_return done.error();
    }
    attached_ = warden::PathKind::None;
    if (closed_) co_return Result<void>{};  // its namespace goes with it
    const auto gone = co_await parts_.warden->network(sandbox_, warden::PathKind::None);
    if (!gone) co_return gone.error();
    co_return Result<void>{};
}

Task<Result<void>> Network::change(egress::PolicySpec policy) {
    const auto self = shared_from_this();
    egress::PolicySpec before = std::exchange(policy_, std::move(policy));
    Result<void> done = co_await apply();
    if (!done) policy_ = std::move(before);
    co_return done;
}

Task<Result<void>> Network::hold(std::string run, egress::PolicySpec policy) {
    const auto self = shared_from_this();
    held_[run] = std::move(policy);
    Result<void> done = co_await apply();
    if (!done) held_.erase(run);
    co_return done;
}

Task<void> Network::release(std::string run) {
    const auto self = shared_from_this();
    if (held_.erase(run) == 0) co_return;
    const Result<void> done = co_await apply();
    if (!done && !closed_) {
        log_warn("a narrowed network was not put back",
                 {{"sandbox_id", sandbox_}, {"error", done.error().message}});
    }
}

void Network::set_attached(Attached attached) {
    attached_ = attached == Attached::Yes ? kind_of(policy_.mode) : warden::PathKind::None;
}

Task<void> Network::close() {
    const auto self = shared_from_this();
    if (std::exchange(closed_, true)) co_return;
    const Result<void> done = co_await apply();
    if (!done)
        log_warn("egress keeps a dead sandbox",
                 {{"sandbox_id", sandbox_}, {"error", done.error().message}});
}

// --- The log ---

void Network::take_event(json::object event, const std::vector<std::string>& runs) {
    event["number"] = ++last_number_;
    event["at"] = rfc3339(number_in(event, "at_ms"));
    event["run_ids"] = json::array(runs.begin(), runs.end());
    event.erase("at_ms");
    event.erase("sandbox");
    log_.push_back(std::move(event));
    if (log_.size() > kLogMax) log_.pop_front();
}

void Network::take_end(const json::object& end) {
    const int64_t id = number_in(end, "id");
    for (json::object& line : log_ | std::views::reverse) {
        if (number_in(line, "id") != id) continue;
        for (const char* name : {"sent", "received", "duration_ms", "reason"}) {
            const json::value* value = end.if_contains(name);
            if (value != nullptr) line[name] = *value;
        }
        return;
    }
}

json::object Network::log(const LogQuery& query) const {
    json::array lines;
    for (const json::object& line : log_) {
        if (number_in(line, "number") <= query.after) continue;
        if (!query.run.empty() && !is_of_run(line, query.run)) continue;
        json::object shown = line;
        shown.erase("id");
        lines.push_back(std::move(shown));
    }
    return {{"entries", std::move(lines)},
            {"dropped", last_number_ - static_cast<int64_t>(log_.size())}};
}

}  // namespace cloister::engine
