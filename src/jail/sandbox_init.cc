#include "jail/sandbox_init.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string_view>

#include "base/limits.h"
#include "jail/before_exec.h"
#include "jail/cpu_choice.h"
#include "jail/identity.h"
#include "jail/mount_tree.h"
#include "jail/stage.h"
#include "os/process.h"

namespace cloister::jail {
namespace {

constexpr const char* kAgentPath = "/opt/cloister/bin/cloister-agent";
constexpr int kFirstFreeFd = 64;  // above every number of birth.h

// Where the descriptors of an order stand in its list.
struct Layout {
    size_t stats = kOrderFixed;
    size_t agent_procs = 0;
    size_t user_procs = 0;
};

Layout layout_of(const birth::Record& record) {
    Layout layout;
    layout.agent_procs = layout.stats + static_cast<size_t>(std::popcount(record.have));
    layout.user_procs = layout.agent_procs + record.procs;
    return layout;
}

void wait_at_the_gate(int gate) {
    char byte = 0;
    if (::read(gate, &byte, 1) != 1) ::_exit(0);
    ::close(gate);
}

void enter_groups(Steps& steps, const SandboxBirth& birth) {
    steps.at(Stage::Groups);
    const size_t first = layout_of(birth.order.record).agent_procs;
    for (size_t i = 0; i < birth.order.record.procs; ++i) {
        steps.must(::write(birth.fds[first + i], "0", 1));
    }
    // Made here and not by clone, so that /proc/self/cgroup inside starts at the sandbox's own
    // group.
    steps.must(::unshare(CLONE_NEWCGROUP));
}

// Anew: in a sandbox that is started again it may be whatever its root has put there.
void write_file(const Steps& steps, const char* path, const char* text, int length) {
    ::unlink(path);
    const auto file = static_cast<int>(
        steps.must(::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644)));
    steps.must(::write(file, text, static_cast<size_t>(length)));
    ::close(file);
}

void set_names(Steps& steps, const char* id) {
    steps.at(Stage::Names);
    steps.must(::sethostname(id, std::strlen(id)));
    std::array<char, 160> text{};
    int length = std::snprintf(text.data(), text.size(), "%s\n", id);
    write_file(steps, "/etc/hostname", text.data(), length);
    length = std::snprintf(text.data(), text.size(),
                           "127.0.0.1 localhost %s\n::1 localhost ip6-localhost\n", id);
    write_file(steps, "/etc/hosts", text.data(), length);
    // Whoever listens there is outside (network_path.h), or there is nobody, and look-ups fail at
    // once. A template may have a link in its place.
    constexpr std::string_view kResolver = "nameserver 127.0.0.53\noptions edns0\n";
    (void)::unlink("/etc/resolv.conf");
    write_file(steps, "/etc/resolv.conf", kResolver.data(), static_cast<int>(kResolver.size()));
}

void start_loopback(Steps& steps) {
    steps.at(Stage::Loopback);
    const auto socket =
        static_cast<int>(steps.must(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)));
    ifreq request{};
    std::strncpy(request.ifr_name, "lo", sizeof(request.ifr_name) - 1);
    request.ifr_flags = IFF_UP;
    steps.must(::ioctl(socket, SIOCSIFFLAGS, &request));
    ::close(socket);
}

// For all that the agent starts, the time since the boot begins now: then the ages of processes, as
// `ps` and `top` tell them, agree with the sandbox's uptime. The agent itself stays in the host's
// time. Kernels without time namespaces tell wrong ages.
void begin_time(Steps& steps) {
    steps.at(Stage::Time);
    if (::unshare(CLONE_NEWTIME) != 0) return;
    timespec now{};
    steps.must(::clock_gettime(CLOCK_BOOTTIME, &now));
    std::array<char, 48> text{};
    const int length = std::snprintf(text.data(), text.size(), "boottime -%lld 0\n",
                                     static_cast<long long>(now.tv_sec));
    // A process that has changed its ids may open its own files in /proc only while it is dumpable.
    steps.must(::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
    const auto file =
        static_cast<int>(steps.must(::open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC)));
    steps.must(::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
    steps.must(::write(file, text.data(), static_cast<size_t>(length)));
    ::close(file);
}

// The CPUs of everything in the sandbox. Where the host has more than a cpu_set_t can name, the
// quota of the cgroup stands alone.
void choose_affinity(Steps& steps, uint32_t cpu, uint32_t slot) {
    steps.at(Stage::Affinity);
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
    const cpu_set_t chosen = choose_cpus(allowed, cpu, slot);
    steps.must(::sched_setaffinity(0, sizeof(chosen), &chosen));
}

int record_file(const Steps& steps, const birth::Record& record) {
    const auto file = static_cast<int>(steps.must(::memfd_create("birth", MFD_CLOEXEC)));
    steps.must(::write(file, &record, sizeof(record)));
    steps.must(::lseek(file, 0, SEEK_SET));
    return file;
}

// Moves a descriptor out of the numbers that birth.h names.
int lift(const Steps& steps, int fd) {
    return static_cast<int>(steps.must(::fcntl(fd, F_DUPFD_CLOEXEC, kFirstFreeFd)));
}

// A descriptor of its own: one that came through the reaper shares its position with every other
// sandbox.
int reopened(const Steps& steps, int fd) {
    std::array<char, 32> path{};
    std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", fd);
    return static_cast<int>(steps.must(::open(path.data(), O_RDONLY | O_CLOEXEC)));
}

// What birth.h promises: number → descriptor, or -1 for one that this host does not have.
using Places = std::array<int, birth::kProcsFirst + birth::kProcsMax>;

void choose_stats(const Steps& steps, const SandboxBirth& birth, Places& places) {
    constexpr std::array kNumbers = {
        birth::kMemoryPeak, birth::kMemoryEvents, birth::kCpuUsage, birth::kPidsEvents,
        birth::kMemoryNow,  birth::kMemoryStat,   birth::kOomEvent,
    };
    static_assert(kNumbers.size() == birth::kHaveBits);
    size_t next = layout_of(birth.order.record).stats;
    for (size_t bit = 0; bit < kNumbers.size(); ++bit) {
        if ((birth.order.record.have & (1u << bit)) == 0) continue;
        places[static_cast<size_t>(kNumbers[bit])] = lift(steps, birth.fds[next++]);
    }
}

Places choose_places(const Steps& steps, const SandboxBirth& birth, const ProcView& view) {
    Places places;
    places.fill(-1);
    const int null = static_cast<int>(steps.must(::open("/dev/null", O_RDWR | O_CLOEXEC)));
    places[STDIN_FILENO] = places[STDOUT_FILENO] = lift(steps, null);
    places[STDERR_FILENO] = lift(steps, STDERR_FILENO);
    places[birth::kListener] = lift(steps, birth.fds[kOrderListener]);
    places[birth::kRecord] = lift(steps, record_file(steps, birth.order.record));
    places[birth::kFinalFilter] = lift(steps, reopened(steps, kReaperFinalFilter));
    places[birth::kReady] = lift(steps, birth.fds[kOrderReady]);
    places[birth::kSpool] = lift(steps, birth.fds[kOrderSpool]);
    places[birth::kZygote] = lift(steps, birth.zygote);
    choose_stats(steps, birth, places);
    for (size_t i = 0; i < view.size(); ++i) places[birth::kProcView + i] = lift(steps, view[i]);
    const size_t first = layout_of(birth.order.record).user_procs;
    for (size_t i = 0; i < birth.order.record.procs; ++i) {
        places[birth::kProcsFirst + i] = lift(steps, birth.fds[first + i]);
    }
    return places;
}

// From here on the ready pipe is at its number of birth.h.
Steps place_descriptors(Steps& steps, const SandboxBirth& birth, const ProcView& view) {
    steps.at(Stage::Descriptors);
    const Places places = choose_places(steps, birth, view);
    for (size_t number = 0; number < places.size(); ++number) {
        const int target = static_cast<int>(number);
        if (places[number] < 0) {
            ::close(target);
        } else {
            steps.must(::dup2(places[number], target));
        }
    }
    Steps rest(birth::kReady);
    rest.at(Stage::Descriptors);
    rest.must(::syscall(SYS_close_range, places.size(), ~0u, 0));
    return rest;
}

[[noreturn]] void execute_agent(Steps& steps) {
    steps.at(Stage::Execute);
    std::array<char, 16> name{"cloister-agent"};
    const std::array<char*, 2> argv{name.data(), nullptr};
    const std::array<char*, 1> environment{nullptr};
    steps.must(::execve(kAgentPath, argv.data(), environment.data()));
    steps.fail(ENOEXEC);
}

}  // namespace

void sandbox_init(const SandboxBirth& birth, int gate) {
    wait_at_the_gate(gate);
    Steps steps(birth.fds[kOrderReady]);
    enter_groups(steps, birth);
    become_inside_root(steps);
    steps.must(::setsid());
    const birth::Record& record = birth.order.record;
    const ProcView view =
        build_mount_tree(steps, {.root = birth.fds[kOrderRoot],
                                 .runtime = birth.fds[kOrderRuntime],
                                 .shm_bytes = record.memory_max / limits::kShmShare,
                                 .cpu = record.cpu});
    set_names(steps, record.sandbox);
    start_loopback(steps);
    begin_time(steps);
    choose_affinity(steps, record.cpu, birth.order.slot);
    set_resource_limits(steps, {.pids_max = record.pids_max, .disk_max = record.disk_max});
    Steps rest = place_descriptors(steps, birth, view);
    become_agent(rest);
    load_birth_filter(rest, birth.base_filter, birth.base_filter_bytes);
    os::reset_signals();
    execute_agent(rest);
}

}  // namespace cloister::jail
