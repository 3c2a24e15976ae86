// Landlock for a whole nest: nobody in it signals anybody outside, or reaches an abstract socket
// out there. Its namespaces see to that already; on older kernels they stand alone.
#pragma once

#include "base/result.h"

namespace cloister::jail {

// For this process and all that descend from it. File rules are left out: root inside would lose
// apt. Sandboxes share the domain, or an agent could not signal what the zygote forked for it.
Result<void> load_scopes();

}  // namespace cloister::jail
