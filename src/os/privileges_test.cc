#include "os/privileges.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <functional>
#include <string>

#include "base/limits.h"
#include "os/fd.h"

namespace cloister::os {
namespace {

// Runs `work` in a child, since nothing given up comes back, and answers its exit code.
int in_child(const std::function<int()>& work) {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(work());
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool status_holds(const std::string& line) {
    return read_file("/proc/self/status", 64 * limits::kKiB).value().find(line) !=
           std::string::npos;
}

TEST(Privileges, AreGoneForGood) {
    EXPECT_EQ(0, in_child([] {
                  if (drop_capability_bounds(0) != 0) return 1;
                  if (become_id(1000, 0) != 0) return 2;
                  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
                      if (!status_holds(std::string(set) + ":\t0000000000000000")) return 3;
                  }
                  if (!status_holds("Groups:\t \n")) return 4;
                  if (::getuid() != 1000 || ::getegid() != 1000) return 5;
                  return ::setuid(0) == 0 ? 6 : 0;
              }));
}

TEST(Privileges, RootInsideKeepsEightCapabilities) {
    EXPECT_EQ(0, in_child([] {
                  const uint64_t eight = capability_bits(kInsideRootCapabilities);
                  if (drop_capability_bounds(eight) != 0) return 1;
                  if (become_id(0, eight) != 0) return 2;
                  for (const char* set : {"CapPrm", "CapEff", "CapBnd"}) {
                      if (!status_holds(std::string(set) + ":\t00000000000400fb")) return 3;
                  }
                  for (const char* set : {"CapInh", "CapAmb"}) {
                      if (!status_holds(std::string(set) + ":\t0000000000000000")) return 4;
                  }
                  return ::getuid() == 0 ? 0 : 5;
              }));
}

TEST(Privileges, AFilterHoldsFromItsLoadingOn) {
    EXPECT_EQ(0, in_child([] {
                  const std::array<sock_filter, 4> no_getppid = {{
                      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),  // the number of the call
                      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
                      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                  }};
                  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
                  if (load_filter(no_getppid.data(), sizeof(no_getppid)) != 0) return 1;
                  return ::syscall(SYS_getppid) == -1 && errno == EPERM ? 0 : 2;
              }));
}

}  // namespace
}  // namespace cloister::os
