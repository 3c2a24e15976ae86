// Processes in namespaces below ours, found again from outside: who they are is asked of the
// kernel, never remembered.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>
#include <vector>

#include "os/process.h"

namespace cloister::os {

struct FoundProcess {
    pid_t pid = 0;
    Pidfd pidfd;
    pid_t number_in_parent = 0;  // in the pid namespace around its own
};

// The first process of a pid namespace below ours among `candidates`, whose root is our id
// `root_id`. A number that passes to another process meanwhile is not taken for it. NotFound if
// none is.
Result<FoundProcess> find_first_process(const std::vector<pid_t>& candidates, uint32_t root_id);

// The numbers after "NSpid:" in the text of /proc/PID/status: one for each pid namespace, ours
// first.
std::vector<pid_t> namespace_pids(std::string_view status);
// Which of our ids is 0 inside, from the text of /proc/PID/uid_map.
std::optional<uint32_t> outside_root(std::string_view uid_map);

}  // namespace cloister::os
