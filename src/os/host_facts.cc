#include "os/host_facts.h"

#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <charconv>

#include "os/fd.h"

namespace cloister::os {
namespace {

constexpr size_t kFileMax = 4096;

int number_at_start(std::string_view& text) {
    int number = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return failed == std::errc{} ? number : 0;
}

}  // namespace

std::string kernel_release() {
    utsname names{};
    return ::uname(&names) == 0 ? names.release : "";
}

bool kernel_at_least(const std::string& release, int major, int minor) {
    std::string_view rest = release;
    const int first = number_at_start(rest);
    if (rest.starts_with('.')) rest.remove_prefix(1);
    const int second = number_at_start(rest);
    return first > major || (first == major && second >= minor);
}

uint32_t landlock_abi() {
    const long version =
        ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return version > 0 ? static_cast<uint32_t>(version) : 0;
}

bool has_seccomp_filters() {
    const uint32_t action = SECCOMP_RET_KILL_PROCESS;
    return ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

uint64_t user_namespaces_max() {
    const auto text = read_file("/proc/sys/user/max_user_namespaces", kFileMax);
    uint64_t number = 0;
    if (text) std::from_chars(text->data(), text->data() + text->size(), number);
    return number;
}

bool has_cpu_pressure() {
    return read_file("/proc/pressure/cpu", kFileMax).has_value();
}

}  // namespace cloister::os
