// /proc/self/mountinfo, and cgroup.controllers behind the first zero byte. Names in mountinfo come
// from whoever mounts.
#include <algorithm>
#include <vector>

#include "fuzz.h"
#include "os/cgroup.h"

using namespace cloister;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text = fuzz::text_of(data, size);
    const size_t end = text.find('\0');
    const std::string_view mountinfo = text.substr(0, end);
    const std::string_view controllers =
        end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const os::CgroupLayout layout = os::cgroup_layout(mountinfo, controllers);
    EXPECT(layout.hierarchies.size() <= os::kHierarchiesMax);
    // What can freeze and nothing else sets no limit.
    const bool sets_limits = std::ranges::any_of(layout.hierarchies, [](const os::Hierarchy& one) {
        return one.controllers != std::vector{os::Controller::Freezer};
    });
    EXPECT((layout.mode != os::CgroupMode::None) == sets_limits);
    for (const os::Hierarchy& hierarchy : layout.hierarchies) {
        EXPECT(!hierarchy.controllers.empty());
        (void)os::settings_of(hierarchy, {.memory_max = 1 << 30, .pids_max = 64, .cpu = 2});
    }
    (void)os::v2_mount_point(mountinfo);
    return 0;
}
