// The nests of this warden and their slots. A nest serves one (project, template revision); the
// runtime is the same for all of them.
#pragma once

#include <bitset>
#include <list>
#include <string>

#include "base/limits.h"
#include "jail/nest.h"
#include "jail/sandbox_objects.h"
#include "wire/warden.h"

namespace cloister::warden {

struct Nest {
    std::string id;
    Id project;
    Id template_revision;
    jail::IdRange ids;
    jail::NestProcess process;
    std::bitset<limits::kNestSlots> slots;  // in use; slot 0 is never given away (the zygote's)
    bool retiring = false;                  // killed; takes no new sandbox
    bool watched = false;                   // its socket and log are polled
    int64_t idle_since_ms = 0;
    std::string log_line;  // what the nest wrote since its last newline

    bool idle() const { return slots.count() == 1; }
    bool full() const { return slots.all(); }
};

class Nests {
  public:
    Nests(const os::CgroupTree& cgroups, const jail::NestTools& tools)
        : cgroups_(cgroups), tools_(tools) {}

    // A nest with a free slot: one that lives, or a new one.
    Result<Nest*> for_plan(const JailPlan& plan);
    Nest* find(const std::string& id);
    Nest* find_process(pid_t pid);
    std::list<Nest>& all() { return nests_; }
    bool empty() const { return nests_.empty(); }

    // The lowest free slot of a nest that is not full.
    static uint32_t take_slot(Nest& nest);
    static void free_slot(Nest& nest, uint32_t slot);

    // Kills a nest; its process is reaped later. Its sandboxes end with it.
    static void kill(Nest& nest);
    // Kills nests without a sandbox beyond those that are kept, the longest idle first.
    void retire_idle();
    void forget(const std::string& id);

  private:
    Result<Nest*> start(const JailPlan& plan);

    const os::CgroupTree& cgroups_;
    const jail::NestTools& tools_;
    std::list<Nest> nests_;
};

}  // namespace cloister::warden
