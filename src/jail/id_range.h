// Host ids of nests (design §5): each nest owns one block of kNestSlots * kSlotIds user and group
// ids for as long as it lives, whichever warden of this host it belongs to.
#pragma once

#include <cstdint>
#include <string_view>

#include "os/fd.h"

namespace cloister::jail {

class IdRange {
  public:
    // A block that no living nest of this host has; ResourceExhausted if there is none.
    static Result<IdRange> claim();
    // The block of a nest that lives: its reaper holds the claim, whoever made it.
    static IdRange of_nest(uint32_t first) { return IdRange(os::Fd(), first); }
    uint32_t first() const { return first_; }
    // The claim lasts until the last copy of this descriptor is closed; the nest's reaper inherits
    // one.
    const os::Fd& claim_fd() const { return claim_; }

  private:
    IdRange(os::Fd claim, uint32_t first) : claim_(std::move(claim)), first_(first) {}
    os::Fd claim_;
    uint32_t first_;
};

// Refuses a host where somebody was given ids of our range (text of /etc/subuid or /etc/subgid).
Result<void> check_subordinate_ids(std::string_view text, std::string_view file_name);
// The same over both files of this host; a missing one is fine.
Result<void> check_host_ids();

}  // namespace cloister::jail
