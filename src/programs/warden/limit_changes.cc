#include "programs/warden/limit_changes.h"

#include <utility>

namespace cloister::warden {

void LimitChanges::change(const Id& sandbox, std::string group, os::GroupLimits wanted,
                          os::GroupLimits plan, Answer answer) {
    std::deque<Change>& queue = waiting_[sandbox];
    queue.push_back(
        {.group = std::move(group), .wanted = wanted, .plan = plan, .answer = std::move(answer)});
    if (queue.size() == 1) start(sandbox);
}

void LimitChanges::start(const Id& sandbox) {
    const Change& first = waiting_.at(sandbox).front();
    helpers_.run(
        [this, group = first.group, wanted = first.wanted, plan = first.plan]() -> Result<void> {
            auto done = cgroups_.narrow(group, wanted);
            // The first error is the one to tell.
            if (!done) (void)cgroups_.limit(group, plan);
            return done;
        },
        [this, sandbox](const Result<void>& result) { finish(sandbox, result); });
}

void LimitChanges::finish(const Id& sandbox, const Result<void>& result) {
    std::deque<Change>& queue = waiting_.at(sandbox);
    const Answer answer = std::move(queue.front().answer);
    queue.pop_front();
    if (queue.empty()) {
        waiting_.erase(sandbox);
    } else {
        start(sandbox);
    }
    answer(result);
}

Result<os::GroupLimits> narrowed(const JailPlan& plan, uint64_t memory_max, uint32_t pids_max) {
    if (memory_max > plan.memory_max || pids_max > plan.pids_max) {
        return make_error(ErrorKind::InvalidArgument,
                          "a run can only narrow the limits of its sandbox");
    }
    return os::GroupLimits{.memory_max = memory_max != 0 ? memory_max : plan.memory_max,
                           .pids_max = pids_max != 0 ? pids_max : plan.pids_max};
}

}  // namespace cloister::warden
