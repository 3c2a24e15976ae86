// LimitChanges: narrows the limits of running sandboxes and puts them back. Of one sandbox one
// change goes after the other; each is work for a helper, because the kernel may have to take
// memory back first.
#pragma once

#include <deque>
#include <functional>
#include <map>

#include "os/cgroup.h"
#include "programs/warden/helpers.h"
#include "wire/warden.h"

namespace cloister::warden {

class LimitChanges {
  public:
    LimitChanges(Helpers& helpers, const os::CgroupTree& cgroups)
        : helpers_(helpers), cgroups_(cgroups) {}

    using Answer = std::function<void(const Result<void>&)>;
    // `group` is that of the sandbox's user. A change that fails leaves `plan` in force as far as
    // the group is still there.
    void change(const Id& sandbox, std::string group, os::GroupLimits wanted, os::GroupLimits plan,
                Answer answer);

  private:
    struct Change {
        std::string group;
        os::GroupLimits wanted, plan;
        Answer answer;
    };
    void start(const Id& sandbox);
    void finish(const Id& sandbox, const Result<void>& result);

    Helpers& helpers_;
    const os::CgroupTree& cgroups_;
    std::map<Id, std::deque<Change>> waiting_;  // the first of each is under way
};

// What a request makes of a plan's limits: InvalidArgument for more than the plan has. 0 in the
// request is the plan's value.
Result<os::GroupLimits> narrowed(const JailPlan& plan, uint64_t memory_max, uint32_t pids_max);

}  // namespace cloister::warden
