// What a former warden left: what lives is found and taken over, the rest is removed.
//
// Sandboxes hang from their nests, not from the warden. The journal says what there should be, the
// cgroups lead to the processes, and each process is asked who it is before it is believed: the
// first of its pid namespace, with the user ids of its nest or slot.
//
//     running in the journal, alive      taken over
//     running in the journal, dead       taken over as ended: its files stay until it is destroyed
//     being started again on its files   as ended
//     being made or removed, or unknown  removed with everything
#pragma once

#include <list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jail/sandbox_objects.h"
#include "programs/warden/journal.h"
#include "programs/warden/nests.h"

namespace cloister::warden {

struct RecoveredSandbox {
    JailPlan plan;
    std::string nest;
    uint32_t slot = 0;
    std::optional<os::FoundProcess> process;  // none: it has ended
};

struct Recovered {
    std::list<Nest> nests;
    std::vector<RecoveredSandbox> sandboxes;
};

// Before anything new is made. Afterwards the host holds of ours what is answered, and nothing
// else.
Result<Recovered> recover(const jail::Host& host, Journal& journal);

// Removes the images and runtimes of earlier versions, and the projects' snapshots of them, but for
// those that what was recovered lives on.
Result<void> remove_old_images(const jail::Host& host, std::span<const std::string> templates,
                               const Recovered& recovered);

}  // namespace cloister::warden
