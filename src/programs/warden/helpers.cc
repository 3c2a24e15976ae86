#include "programs/warden/helpers.h"

#include "base/limits.h"

namespace cloister::warden {

void Helpers::run(Work work, Done done) {
    waiting_.push_back({.work = std::move(work), .done = std::move(done)});
    start_waiting();
}

void Helpers::start_waiting() {
    while (!waiting_.empty() && running_.size() < limits::kWardenHelpersMax) {
        Job job = std::move(waiting_.front());
        waiting_.pop_front();
        start(std::move(job));
    }
}

void Helpers::start(Job job) {
    auto helper = os::Helper::start(job.work);
    if (!helper) {
        job.done(std::move(helper).error());
        return;
    }
    const uint64_t number = next_number_++;
    const auto [at, added] =
        running_.emplace(number, Running{.helper = std::move(*helper), .job = std::move(job)});
    poller_.watch(at->second.helper.done(), [this, number] { finish(number); });
}

void Helpers::finish(uint64_t number) {
    auto node = running_.extract(number);
    Running& ended = node.mapped();
    poller_.unwatch(ended.helper.done());
    ended.job.work =
        nullptr;  // what only the helper needed (descriptors) goes before anybody is told
    ended.job.done(ended.helper.take_result());
    start_waiting();
}

}  // namespace cloister::warden
