#include "programs/warden/nests.h"

#include <algorithm>
#include <csignal>
#include <vector>

#include "base/check.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/time.h"

namespace cloister::warden {

Result<Nest*> Nests::for_plan(const JailPlan& plan) {
    for (Nest& nest : nests_) {
        if (nest.project == plan.project && nest.template_revision == plan.template_revision &&
            !nest.retiring && !nest.full()) {
            return &nest;
        }
    }
    return start(plan);
}

Result<Nest*> Nests::start(const JailPlan& plan) {
    const std::string id = new_id();
    jail::IdRange ids = TRY(jail::IdRange::claim());
    TRY_OK(jail::create_nest_groups(cgroups_, id));
    auto process = jail::start_nest(
        tools_, ids, [&](pid_t pid) { return cgroups_.move(jail::reaper_group(id), pid); });
    if (!process) {
        (void)cgroups_.remove(id);  // the reason to tell is the first one
        return std::move(process).error();
    }
    nests_.push_back({.id = id,
                      .project = plan.project,
                      .template_revision = plan.template_revision,
                      .ids = std::move(ids),
                      .process = std::move(*process)});
    nests_.back().slots.set(0);
    return &nests_.back();
}

Nest* Nests::find(const std::string& id) {
    const auto found = std::ranges::find(nests_, id, &Nest::id);
    return found == nests_.end() ? nullptr : &*found;
}

Nest* Nests::find_process(pid_t pid) {
    const auto found =
        std::ranges::find_if(nests_, [pid](const Nest& nest) { return nest.process.pid == pid; });
    return found == nests_.end() ? nullptr : &*found;
}

uint32_t Nests::take_slot(Nest& nest) {
    CLOISTER_CHECK(!nest.full());
    uint32_t slot = 1;
    while (nest.slots.test(slot)) ++slot;
    nest.slots.set(slot);
    return slot;
}

void Nests::free_slot(Nest& nest, uint32_t slot) {
    nest.slots.reset(slot);
    if (nest.idle()) nest.idle_since_ms = steady_ms();
}

void Nests::kill(Nest& nest) {
    nest.retiring = true;
    const auto killed = nest.process.pidfd.signal(SIGKILL);
    if (!killed)
        log_error("a nest cannot be killed",
                  {{"nest", nest.id}, {"error", killed.error().message}});
}

void Nests::retire_idle() {
    std::vector<Nest*> idle;
    for (Nest& nest : nests_) {
        if (nest.idle() && !nest.retiring) idle.push_back(&nest);
    }
    std::ranges::sort(idle, {}, &Nest::idle_since_ms);
    for (size_t i = 0; i + limits::kNestsIdleMax < idle.size(); ++i) kill(*idle[i]);
}

void Nests::forget(const std::string& id) {
    std::erase_if(nests_, [&](const Nest& nest) { return nest.id == id; });
}

}  // namespace cloister::warden
