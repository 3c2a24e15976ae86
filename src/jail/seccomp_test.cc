#include "jail/seccomp.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace cloister::jail {
namespace {

bool load(const std::string& filter) {
    sock_fprog program{.len = static_cast<unsigned short>(filter.size() / sizeof(sock_filter)),
                       .filter = reinterpret_cast<sock_filter*>(const_cast<char*>(filter.data()))};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

enum class Loaded { BaseOnly, BaseAndFinal, ZygoteOnly, ZygoteAndForked };

std::vector<FilterKind> kinds_of(Loaded loaded) {
    switch (loaded) {
        case Loaded::BaseOnly:
            return {FilterKind::Base};
        case Loaded::ZygoteOnly:
            return {FilterKind::Zygote};
        case Loaded::ZygoteAndForked:
            return {FilterKind::Zygote, FilterKind::Forked};
        case Loaded::BaseAndFinal:
            break;
    }
    return {FilterKind::Base, FilterKind::Final};
}

// The errno of `probe` in a child under these filters (0: it went through), or -signal if the child
// was killed.
int outcome(const std::function<long()>& probe, Loaded loaded = Loaded::BaseAndFinal) {
    std::vector<std::string> filters;
    for (const FilterKind kind : kinds_of(loaded)) {
        auto filter = compile_filter(kind);
        if (!filter) return -1000;
        filters.push_back(std::move(*filter));
    }
    const pid_t child = ::fork();
    if (child == 0) {
        if (!std::ranges::all_of(filters, load)) ::_exit(200);
        errno = 0;
        ::_exit(probe() == -1 ? errno : 0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

long call(long number, long a = 0, long b = 0, long c = 0, long d = 0) {
    return ::syscall(number, a, b, c, d);
}

TEST(Seccomp, DeniesNamespacesAndMountsToEveryone) {
    for (const Loaded loaded : {Loaded::BaseOnly, Loaded::BaseAndFinal}) {
        EXPECT_EQ(outcome([] { return call(SYS_unshare, CLONE_NEWUSER); }, loaded), EPERM);
        EXPECT_EQ(outcome([] { return call(SYS_setns, -1, 0); }, loaded), EPERM);
        EXPECT_EQ(outcome([] { return call(SYS_clone, CLONE_NEWUSER | SIGCHLD); }, loaded), EPERM);
        EXPECT_EQ(outcome([] { return call(SYS_clone, CLONE_NEWNET | SIGCHLD); }, loaded), EPERM);
        EXPECT_EQ(outcome([] { return call(SYS_clone3, 0, 0); }, loaded), ENOSYS);
        EXPECT_EQ(outcome([] { return call(SYS_mount); }, loaded), EPERM);
        EXPECT_EQ(outcome([] { return call(SYS_fsopen); }, loaded), EPERM);
        EXPECT_EQ(outcome([] { return call(458 /* listmount */); }, loaded), EPERM);
    }
}

TEST(Seccomp, LetsTheZygoteEnterNamespacesAndNoMore) {
    EXPECT_EQ(outcome([] { return call(SYS_setns, -1, 0); }, Loaded::ZygoteOnly), EBADF);
    EXPECT_EQ(outcome([] { return call(SYS_unshare, CLONE_NEWUSER); }, Loaded::ZygoteOnly), EPERM);
    EXPECT_EQ(outcome([] { return call(SYS_mount); }, Loaded::ZygoteOnly), EPERM);
    EXPECT_EQ(outcome([] { return call(SYS_bpf, 0, 0, 0); }, Loaded::ZygoteOnly), EPERM);
    EXPECT_EQ(outcome([] { return call(500); }, Loaded::ZygoteOnly), ENOSYS);
}

TEST(Seccomp, WhatIsForkedEndsWithTheSameAsWhatIsExecuted) {
    const std::array<std::function<long()>, 12> probes = {
        [] { return call(SYS_setns, -1, 0); },
        [] { return call(SYS_unshare, CLONE_NEWUSER); },
        [] { return call(SYS_clone3, 0, 0); },
        [] { return call(SYS_mount); },
        [] { return call(SYS_bpf, 0, 0, 0); },
        [] { return call(SYS_ptrace, PTRACE_TRACEME); },
        [] { return call(SYS_splice, -1); },
        [] { return call(SYS_socket, AF_PACKET, SOCK_RAW, 0); },
        [] { return call(SYS_socket, AF_INET, SOCK_STREAM, 0); },
        [] { return call(SYS_personality, 0xFFFFFFFF); },
        [] { return call(500); },
        [] { return call(SYS_getpid); },
    };
    for (const auto& probe : probes) {
        EXPECT_EQ(outcome(probe, Loaded::ZygoteAndForked), outcome(probe, Loaded::BaseAndFinal));
    }
}

TEST(Seccomp, DeniesKernelSurfaces) {
    EXPECT_EQ(outcome([] { return call(SYS_bpf, 0, 0, 0); }), EPERM);
    EXPECT_EQ(outcome([] { return call(SYS_userfaultfd); }), EPERM);
    EXPECT_EQ(outcome([] { return call(SYS_keyctl); }), EPERM);
    EXPECT_EQ(outcome([] { return call(SYS_perf_event_open); }), EPERM);
    EXPECT_EQ(outcome([] { return call(SYS_io_uring_setup, 1, 0); }), ENOSYS);
    EXPECT_EQ(outcome([] { return call(SYS_reboot); }), EPERM);
    EXPECT_EQ(outcome([] { return call(SYS_init_module); }), EPERM);
    EXPECT_EQ(outcome([] { return call(SYS_open_by_handle_at); }), EPERM);
}

TEST(Seccomp, DeniesOtherProcessesAndZeroCopyToCodeOnly) {
    EXPECT_EQ(outcome([] { return call(SYS_ptrace, PTRACE_TRACEME); }), EPERM);
    EXPECT_EQ(outcome([] { return call(SYS_ptrace, PTRACE_TRACEME); }, Loaded::BaseOnly), 0);
    EXPECT_EQ(outcome([] { return call(SYS_pidfd_getfd, -1, 0, 0); }), EPERM);
    EXPECT_EQ(outcome([] { return call(448 /* process_mrelease */, -1, 0); }), EPERM);
    EXPECT_EQ(outcome([] { return call(451 /* cachestat */, -1, 0, 0, 0); }), ENOSYS);
    EXPECT_EQ(outcome([] { return call(SYS_process_vm_readv); }), EPERM);
    EXPECT_EQ(outcome([] { return call(SYS_splice, -1); }), ENOSYS);
    EXPECT_EQ(outcome([] { return call(SYS_vmsplice, -1); }), ENOSYS);
}

TEST(Seccomp, AllowsFourSocketFamilies) {
    EXPECT_EQ(outcome([] { return long{::socket(AF_UNIX, SOCK_STREAM, 0)}; }), 0);
    EXPECT_EQ(outcome([] { return long{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)}; }), 0);
    EXPECT_EQ(outcome([] { return long{::socket(AF_INET6, SOCK_DGRAM, 0)}; }), 0);
    EXPECT_EQ(outcome([] { return long{::socket(AF_NETLINK, SOCK_RAW, 0)}; }), 0);
    EXPECT_EQ(outcome([] { return long{::socket(AF_NETLINK, SOCK_RAW, 6 /* XFRM */)}; }),
              EAFNOSUPPORT);
    for (const int family : {0, 3, 9, 11, 15, 17, 21, 29, 38, 40, 44}) {
        EXPECT_EQ(outcome([=] { return long{::socket(family, SOCK_STREAM, 0)}; }), EAFNOSUPPORT)
            << "family " << family;
    }
    EXPECT_EQ(outcome([] { return long{::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, 1)}; }), EPERM);
    EXPECT_EQ(outcome([] { return long{::socket(AF_INET6, SOCK_RAW, 58)}; }), EPERM);
    EXPECT_EQ(outcome([] { return long{::socket(AF_INET, SOCK_SEQPACKET, 132)}; }), EPERM);
    for (const int protocol :
         {132 /* SCTP */, 136 /* UDP-Lite */, 256 /* SMC */, 262 /* MPTCP */}) {
        for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
            EXPECT_EQ(outcome([=] { return long{::socket(AF_INET, type, protocol)}; }),
                      EPROTONOSUPPORT)
                << protocol;
            EXPECT_EQ(
                outcome([=] { return long{::socket(AF_INET6, type | SOCK_CLOEXEC, protocol)}; }),
                EPROTONOSUPPORT)
                << protocol;
        }
    }
    EXPECT_EQ(outcome([] { return long{::socket(AF_INET, SOCK_STREAM, IPPROTO_TCP)}; }), 0);
    EXPECT_EQ(outcome([] { return long{::socket(AF_INET6, SOCK_DGRAM, IPPROTO_UDP)}; }), 0);
}

TEST(Seccomp, AllowsPairsOfUnixSocketsOnly) {
    std::array<int, 2> pair{};
    EXPECT_EQ(outcome([&] { return long{::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data())}; }), 0);
    for (const int family : {0, 2, 10, 30 /* TIPC */}) {
        EXPECT_EQ(outcome([&] { return long{::socketpair(family, SOCK_STREAM, 0, pair.data())}; }),
                  EAFNOSUPPORT)
            << "family " << family;
    }
    EXPECT_EQ(outcome([&] {
                  return call(SYS_socketpair, (1L << 32) | 30, SOCK_STREAM, 0,
                              reinterpret_cast<long>(pair.data()));
              }),
              EAFNOSUPPORT);
}

TEST(Seccomp, AllowsThePlainPersonalityAndFixedAddresses) {
    for (const long allowed : {0L, 0xFFFFFFFFL, 0x0040000L}) {
        EXPECT_EQ(outcome([=] { return call(SYS_personality, allowed); }), 0) << allowed;
    }
    for (const long denied :
         {1L, 8L, 0x0020000L, 0x0400000L, 0x0440000L, 0x0100000L, 0xFFFBFFFFL}) {
        EXPECT_EQ(outcome([=] { return call(SYS_personality, denied); }), EPERM) << denied;
    }
}

TEST(Seccomp, LooksOnlyAtTheHalfOfAnArgumentThatTheKernelReads) {
    constexpr long kUpper = 1L << 32;
    EXPECT_EQ(outcome([] { return call(SYS_socket, kUpper | 38 /* ALG */, SOCK_SEQPACKET, 0); }),
              EAFNOSUPPORT);
    EXPECT_EQ(outcome([] { return call(SYS_socket, kUpper | 3, SOCK_STREAM, 0); }), EAFNOSUPPORT);
    EXPECT_EQ(outcome([] { return call(SYS_ioctl, 0, kUpper | TIOCSTI, 0); }), EPERM);
}

TEST(Seccomp, DeniesDevicesAndTerminalKeysButNotFifos) {
    EXPECT_EQ(outcome([] { return long{::mknod("/tmp/x", S_IFCHR | 0600, 0)}; }), EPERM);
    EXPECT_EQ(outcome([] { return long{::mknodat(AT_FDCWD, "/tmp/x", S_IFBLK | 0600, 0)}; }),
              EPERM);
    EXPECT_EQ(outcome([] { return long{::mknodat(-1, "x", S_IFIFO | 0600, 0)}; }), EBADF);
    EXPECT_EQ(outcome([] { return long{::ioctl(0, TIOCSTI, "x")}; }), EPERM);
    EXPECT_EQ(outcome([] { return long{::ioctl(0, TIOCSETD, "x")}; }), EPERM);
}

TEST(Seccomp, AnswersNoSuchCallForNumbersNobodyHasLookedAt) {
    EXPECT_EQ(outcome([] { return call(467); }), ENOSYS);
    EXPECT_EQ(outcome([] { return call(100'000); }), ENOSYS);
}

TEST(Seccomp, KillsCallsOfAnotherAbi) {
    EXPECT_EQ(outcome([] { return call(0x40000000 | SYS_getpid); }), -SIGSYS);
}

TEST(Seccomp, LeavesOrdinaryProgramsAlone) {
    EXPECT_EQ(outcome([] {
                  return long{::execl("/bin/sh", "sh", "-c", "ls / | wc -l >/dev/null", nullptr)};
              }),
              0);
    EXPECT_EQ(outcome([] { return long{::setuid(65534)}; }), 0);
    EXPECT_EQ(outcome([] {
                  const pid_t child = ::fork();
                  if (child == 0) ::_exit(0);
                  return long{child};
              }),
              0);
}

TEST(Seccomp, FitsTheKernelsLimit) {
    for (const FilterKind kind : {FilterKind::Base, FilterKind::Final}) {
        const auto filter = compile_filter(kind);
        ASSERT_TRUE(filter) << filter.error().message;
        EXPECT_EQ(filter->size() % sizeof(sock_filter), 0u);
        EXPECT_LE(filter->size() / sizeof(sock_filter), 1024u);
        EXPECT_GT(filter->size() / sizeof(sock_filter), 20u);
    }
}

}  // namespace
}  // namespace cloister::jail
