#include "engine/narrowing.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/log.h"

namespace cloister::engine {
namespace {

// 0 stands for no wish.
template <class Number>
Number smaller(Number a, Number b) {
    if (a == 0 || b == 0) return std::max(a, b);
    return std::min(a, b);
}

}  // namespace

Narrowed Narrowing::smallest() const {
    Narrowed all;
    for (const Narrowed& one : held_ | std::views::values) {
        all.memory_max = smaller(all.memory_max, one.memory_max);
        all.pids_max = smaller(all.pids_max, one.pids_max);
    }
    return all;
}

Task<Result<void>> Narrowing::apply() {
    const auto self = shared_from_this();
    while (applying_) co_await applied_.wait();
    applying_ = true;
    const Narrowed wanted = smallest();
    Result<void> done = co_await warden_->narrow(sandbox_, wanted.memory_max, wanted.pids_max);
    applying_ = false;
    applied_.notify_all();
    co_return done;
}

Task<Result<void>> Narrowing::hold(std::string run, Narrowed wanted) {
    held_[run] = wanted;
    Result<void> done = co_await apply();
    if (!done) held_.erase(run);
    co_return done;
}

Task<void> Narrowing::release(std::string run) {
    if (held_.erase(run) == 0) co_return;
    const Result<void> done = co_await apply();
    if (!done && done.error().kind != ErrorKind::NotFound) {
        log_warn("narrowed limits were not put back",
                 {{"sandbox_id", sandbox_}, {"error", done.error().message}});
    }
}

Task<void> Narrowing::repeat() {
    if (held_.empty()) co_return;
    const Result<void> done = co_await apply();
    if (!done) {
        log_warn("limits were not narrowed again",
                 {{"sandbox_id", sandbox_}, {"error", done.error().message}});
    }
}

}  // namespace cloister::engine
