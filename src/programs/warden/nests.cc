#include "programs/warden/nests.h"

#include <algorithm>
#include <csignal>
#include <vector>

#include "base/check.h"
#include "base/failpoint.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/time.h"
#include "wire/layout.h"

namespace cloister::warden {
namespace {

Result<jail::NestProcess> start_process(const jail::Host& host, const jail::NestTools& tools,
                                        const jail::IdRange& ids, const std::string& nest) {
    TRY_OK(jail::create_nest_groups(host.cgroups, nest));
    failpoint("warden:after_nest_groups");
    return jail::start_nest(tools, ids, layout::nest_socket(host.data, nest), [&](pid_t pid) {
        return host.cgroups.move(jail::reaper_group(nest), pid);
    });
}

}  // namespace

Result<Nest*> Nests::for_plan(const JailPlan& plan) {
    for (Nest& nest : nests_) {
        if (nest.entry.project == plan.project &&
            nest.entry.template_revision == plan.template_revision && current(nest) &&
            !nest.retiring && !nest.full()) {
            return &nest;
        }
    }
    return start(plan);
}

Result<Nest*> Nests::start(const JailPlan& plan) {
    const std::string id = new_id();
    jail::IdRange ids = TRY(jail::IdRange::claim());
    const NestEntry entry{.project = plan.project,
                          .template_revision = plan.template_revision,
                          .runtime = host_.runtime,
                          .first_id = ids.first()};
    TRY_OK(journal_.making_nest(id, entry));
    failpoint("warden:after_nest_journal");
    auto process = start_process(host_, tools_, ids, id);
    if (!process) {
        (void)jail::remove_nest_objects(host_, id);  // the reason to tell is the first one
        (void)journal_.nest_gone(id);
        return std::move(process).error();
    }
    failpoint("warden:after_nest_start");
    return &add({.id = id, .entry = entry, .ids = std::move(ids), .process = std::move(*process)});
}

Nest& Nests::add(Nest nest) {
    nests_.push_back(std::move(nest));
    nests_.back().slots.set(0);
    return nests_.back();
}

Nest* Nests::find(const std::string& id) {
    const auto found = std::ranges::find(nests_, id, &Nest::id);
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
    if (slot == 0) return;  // the zygote's: the sandbox has none
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
        if (!nest.idle() || nest.retiring) continue;
        if (current(nest))
            idle.push_back(&nest);
        else
            kill(nest);
    }
    std::ranges::sort(idle, {}, &Nest::idle_since_ms);
    for (size_t i = 0; i + limits::kNestsIdleMax < idle.size(); ++i) kill(*idle[i]);
}

void Nests::forget(const std::string& id) {
    std::erase_if(nests_, [&](const Nest& nest) { return nest.id == id; });
}

}  // namespace cloister::warden
