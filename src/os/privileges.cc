#include "os/privileges.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace cloister::os {

int drop_capability_bounds(uint64_t kept) {
    if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) return errno;
    for (int capability = 0; ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability) {
        if (((kept >> capability) & 1) != 0) continue;
        if (::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) == 0) continue;
        if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) return errno;
    }
    return 0;
}

int become_id(uid_t id, uint64_t kept) {
    // Raw calls: the C library's would first look for other threads.
    if (::syscall(SYS_setgroups, 0, nullptr) != 0) return errno;
    if (::syscall(SYS_setresgid, id, id, id) != 0) return errno;
    if (::syscall(SYS_setresuid, id, id, id) != 0) return errno;
    // The kernel empties the sets only on the way from root to a user, and the agent is no root.
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    std::array<__user_cap_data_struct, 2> sets{};
    for (size_t half = 0; half < sets.size(); ++half) {
        sets[half].effective = sets[half].permitted = static_cast<uint32_t>(kept >> (32 * half));
    }
    return ::syscall(SYS_capset, &header, sets.data()) == 0 ? 0 : errno;
}

int load_filter(const void* filter, size_t size) {
    const sock_fprog program{
        .len = static_cast<unsigned short>(size / sizeof(sock_filter)),
        .filter = static_cast<sock_filter*>(const_cast<void*>(filter)),
    };
    return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0 ? 0 : errno;
}

}  // namespace cloister::os
