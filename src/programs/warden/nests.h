// The nests of this warden and their slots. A nest serves one (project, template revision,
// runtime): one of an earlier runtime lives on until its last sandbox is gone, and takes no new
// one.
#pragma once

#include <bitset>
#include <list>
#include <string>

#include "base/limits.h"
#include "jail/nest.h"
#include "jail/sandbox_objects.h"
#include "programs/warden/journal.h"
#include "wire/warden.h"

namespace cloister::warden {

struct Nest {
    std::string id;
    NestEntry entry;
    jail::IdRange ids;
    jail::NestProcess process;
    std::bitset<limits::kNestSlots> slots;  // in use; slot 0 is never given away (the zygote's)
    bool retiring = false;                  // killed; takes no new sandbox
    bool watched = false;                   // its process, socket and log are polled
    bool has_zygote = false;                // as far as we know: one was ordered, and no end heard
    int64_t zygote_ordered_ms = 0;
    int64_t idle_since_ms = 0;
    std::string log_line;  // what the nest wrote since its last newline

    bool idle() const { return slots.count() == 1; }
    bool full() const { return slots.all(); }
};

class Nests {
  public:
    Nests(const jail::Host& host, const jail::NestTools& tools, Journal& journal)
        : host_(host), tools_(tools), journal_(journal) {}

    // A nest with a free slot: one that lives, or a new one.
    Result<Nest*> for_plan(const JailPlan& plan);
    // One that a former warden made.
    Nest& add(Nest nest);
    Nest* find(const std::string& id);
    std::list<Nest>& all() { return nests_; }
    bool empty() const { return nests_.empty(); }

    // The lowest free slot of a nest that is not full.
    static uint32_t take_slot(Nest& nest);
    static void free_slot(Nest& nest, uint32_t slot);

    // Kills a nest; its pidfd tells when it has ended. Its sandboxes end with it.
    static void kill(Nest& nest);
    // Kills nests without a sandbox: those that can take none, and beyond those that are kept the
    // longest idle.
    void retire_idle();
    void forget(const std::string& id);

  private:
    Result<Nest*> start(const JailPlan& plan);
    bool current(const Nest& nest) const { return nest.entry.runtime == host_.runtime; }

    const jail::Host& host_;
    const jail::NestTools& tools_;
    Journal& journal_;
    std::list<Nest> nests_;
};

}  // namespace cloister::warden
