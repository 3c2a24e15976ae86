#include "jail/landlock.h"

#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/fd.h"

namespace cloister::jail {
namespace {

// Of linux/landlock.h, whose older versions end before `scoped`.
struct LandlockRules {
    uint64_t handled_files = 0;
    uint64_t handled_network = 0;
    uint64_t scoped = 0;
};
constexpr uint64_t kScopeAbstractSockets = 1;
constexpr uint64_t kScopeSignals = 2;
constexpr long kScopesAbi = 6;  // Linux 6.12

}  // namespace

Result<void> load_scopes() {
    if (::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION) <
        kScopesAbi) {
        return {};
    }
    const LandlockRules rules{.scoped = kScopeAbstractSockets | kScopeSignals};
    const os::Fd ruleset(
        static_cast<int>(::syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0)));
    if (!ruleset.open() || ::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0)
        return last_os_failure("loading the Landlock scopes");
    return {};
}

}  // namespace cloister::jail
