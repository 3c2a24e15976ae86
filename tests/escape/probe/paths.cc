// What can be reached by a name or a signal: the agent, the kernel's files, and what the jail made.
#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "attempt.h"

namespace probe {
namespace {

long readable(const char* path) {
    const int file = ::open(path, O_RDONLY);
    if (file < 0) return -1;
    char byte = 0;
    return ::read(file, &byte, 1) < 0 ? -1 : 0;
}
long writable(const char* path) {
    const int file = ::open(path, O_WRONLY);
    return file < 0 ? -1 : 0;
}
long created(const char* path) {
    const int file = ::open(path, O_WRONLY | O_CREAT, 0600);
    if (file >= 0) ::unlink(path);
    return file < 0 ? -1 : 0;
}
long listable(const char* path) {
    DIR* directory = ::opendir(path);
    if (directory == nullptr) return -1;
    errno = 0;
    (void)::readdir(directory);
    return errno == 0 ? 0 : -1;
}
long link_of(const char* path) {
    std::array<char, 256> target{};
    return ::readlink(path, target.data(), target.size());
}

// Root inside may take the agent's number; it must not be worth anything.
long as_the_agent(long (*reach)(const char*), const char* path) {
    if (::setresgid(65533, 65533, 65533) != 0 || ::setresuid(65533, 65533, 65533) != 0) return -1;
    return reach(path);
}

long abstract_socket_of_the_host(const char* name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path + 1, name, sizeof(address.sun_path) - 2);
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    const auto size =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + std::strlen(name));
    return ::connect(socket, reinterpret_cast<const sockaddr*>(&address), size);
}

const Attempt kPaths[] = {
    {"read agent's memory", [] { return readable("/proc/1/mem"); }},
    {"write agent's memory", [] { return writable("/proc/1/mem"); }},
    {"read agent's environment", [] { return readable("/proc/1/environ"); }},
    {"read agent's maps", [] { return readable("/proc/1/maps"); }},
    {"list agent's descriptors", [] { return listable("/proc/1/fd"); }},
    {"open agent's listener", [] { return link_of("/proc/1/fd/3"); }},
    {"enter agent's root", [] { return listable("/proc/1/root/"); }},
    {"agent's program by its link", [] { return writable("/proc/1/exe"); }},
    {"read agent's program", [] { return readable("/opt/cloister/bin/cloister-agent"); }},
    {"agent's program by its path", [] { return writable("/opt/cloister/bin/cloister-agent"); }},
    {"agent's namespaces", [] { return link_of("/proc/1/ns/net"); }},
    {"agent's oom score", [] { return writable("/proc/1/oom_score_adj"); }},
    {"memory, with the agent's id", [] { return as_the_agent(readable, "/proc/1/mem"); }},
    {"descriptors, with the agent's id", [] { return as_the_agent(listable, "/proc/1/fd"); }},
    {"environment, with the agent's id", [] { return as_the_agent(readable, "/proc/1/environ"); }},
    {"write runtime", [] { return created("/opt/cloister/probe"); }},
    {"write /proc/meminfo", [] { return writable("/proc/meminfo"); }},
    {"write core_pattern", [] { return writable("/proc/sys/kernel/core_pattern"); }},
    {"write modprobe", [] { return writable("/proc/sys/kernel/modprobe"); }},
    {"write ns_last_pid", [] { return writable("/proc/sys/kernel/ns_last_pid"); }},
    {"write max_user_namespaces", [] { return writable("/proc/sys/user/max_user_namespaces"); }},
    {"write ip_forward", [] { return writable("/proc/sys/net/ipv4/ip_forward"); }},
    {"write sysrq-trigger", [] { return writable("/proc/sysrq-trigger"); }},
    {"write irq", [] { return writable("/proc/irq/default_smp_affinity"); }},
    {"own oom score down",
     [] {
         const int file = ::open("/proc/self/oom_score_adj", O_WRONLY);
         return file < 0 ? -1 : ::write(file, "-1000", 5);
     }},
    {"cgroup files", [] { return listable("/sys/fs/cgroup"); }},
    {"kernel log", [] { return readable("/dev/kmsg"); }},
    {"memory device", [] { return readable("/dev/mem"); }},
    {"kvm", [] { return readable("/dev/kvm"); }},
    {"fuse", [] { return readable("/dev/fuse"); }},
    {"tun", [] { return readable("/dev/net/tun"); }},
    {"loop control", [] { return readable("/dev/loop-control"); }},
    {"file capability",
     [] {
         (void)created("/tmp/probe-caps");
         const int file = ::open("/tmp/probe-caps", O_WRONLY | O_CREAT, 0700);
         const std::array<unsigned char, 20> caps = {0, 0, 0, 2, 0xff, 0xff, 0xff, 0xff};
         const int set = ::fsetxattr(file, "security.capability", caps.data(), caps.size(), 0);
         const int error = errno;
         ::unlink("/tmp/probe-caps");
         errno = error;
         return long{set};
     }},
    {"host's abstract socket",
     [] { return abstract_socket_of_the_host("/org/freedesktop/systemd1"); }},
    {"host's docker socket", [] { return link_of("/var/run/docker.sock"); }},
    {"port below 1024",
     [] {
         const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
         std::array<unsigned char, 16> address = {2, 0, 0, 80};  // AF_INET, port 80, any address
         return long{::bind(socket, reinterpret_cast<const sockaddr*>(address.data()), 16)};
     }},
};

// --- Facts ---

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
    return text.empty() ? "none" : text;
}

std::string socket_families(bool pair) {
    std::vector<std::string> allowed;
    for (int family = 0; family < 64; ++family) {
        std::array<int, 2> ends{};
        bool reached = false;
        for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
            const int made =
                pair ? ::socketpair(family, type, 0, ends.data()) : ::socket(family, type, 0);
            reached = reached || made >= 0 ||
                      (errno != EAFNOSUPPORT && errno != EPERM && errno != ESOCKTNOSUPPORT);
        }
        if (reached) allowed.push_back(std::to_string(family));
    }
    return joined(allowed);
}

std::string netlink_protocols() {
    std::vector<std::string> allowed;
    for (int protocol = 0; protocol < 32; ++protocol) {
        if (::socket(AF_NETLINK, SOCK_RAW, protocol) >= 0)
            allowed.push_back(std::to_string(protocol));
    }
    return joined(allowed);
}

std::string status_line(const std::string& name) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with(name + ":")) return line.substr(line.find_last_of("\t ") + 1);
    }
    return "absent";
}

// Mount points whose options lack `option`, each once.
std::string mounts_without(const std::string& option) {
    std::ifstream mounts("/proc/self/mountinfo");
    std::set<std::string> places;
    for (std::string line; std::getline(mounts, line);) {
        std::istringstream words(line);
        std::string id, parent, device, root, place, options;
        words >> id >> parent >> device >> root >> place >> options;
        if (("," + options + ",").find("," + option + ",") == std::string::npos)
            places.insert(place);
    }
    return joined({places.begin(), places.end()});
}

std::string entries_of(const char* path) {
    std::set<std::string> names;
    DIR* directory = ::opendir(path);
    if (directory == nullptr) return ::strerrorname_np(errno);
    while (const dirent* entry = ::readdir(directory)) {
        const std::string name = entry->d_name;
        if (name != "." && name != "..") names.insert(name);
    }
    ::closedir(directory);
    return joined({names.begin(), names.end()});
}

// 0, 1, 2, whatever numbers the probe's own directory stream has on top.
std::string own_descriptors() {
    std::set<int> open;
    for (int number = 0; number < 4096; ++number) {
        if (::fcntl(number, F_GETFD) >= 0) open.insert(number);
    }
    std::vector<std::string> numbers;
    for (const int number : open) numbers.push_back(std::to_string(number));
    return joined(numbers);
}

// Files of /proc that must not tell of the host: those that still say something.
std::string files_that_speak() {
    std::vector<std::string> speaking;
    for (const char* name :
         {"kcore",     "keys",          "key-users",  "kmsg",        "kallsyms",
          "modules",   "config.gz",     "slabinfo",   "vmallocinfo", "pagetypeinfo",
          "cmdline",   "swaps",         "interrupts", "softirqs",    "schedstat",
          "diskstats", "latency_stats", "timer_list", "timer_stats", "sched_debug",
          "mtrr"}) {
        std::ifstream file(std::string("/proc/") + name);
        if (file.get() != std::ifstream::traits_type::eof()) speaking.emplace_back(name);
    }
    for (const char* name : {"acpi", "asound", "scsi", "pressure"}) {
        const std::string entries = entries_of((std::string("/proc/") + name).c_str());
        if (entries != "none" && entries != "ENOENT") speaking.emplace_back(name);
    }
    return joined(speaking);
}

std::string signals_that_pass_to_the_agent() {
    std::vector<std::string> passed;
    for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGTERM, SIGSTOP, SIGSEGV}) {
        if (::kill(1, number) == 0) passed.push_back(::sigabbrev_np(number));
    }
    return joined(passed);
}

const Fact kFacts[] = {
    {"uid", [] { return std::to_string(::getuid()); }},
    {"gid", [] { return std::to_string(::getgid()); }},
    {"effective capabilities", [] { return status_line("CapEff"); }},
    {"permitted capabilities", [] { return status_line("CapPrm"); }},
    {"inheritable capabilities", [] { return status_line("CapInh"); }},
    {"bounding capabilities", [] { return status_line("CapBnd"); }},
    {"ambient capabilities", [] { return status_line("CapAmb"); }},
    {"no_new_privs", [] { return status_line("NoNewPrivs"); }},
    {"seccomp", [] { return status_line("Seccomp"); }},
    {"descriptors", own_descriptors},
    {"socket families", [] { return socket_families(false); }},
    {"socketpair families", [] { return socket_families(true); }},
    {"netlink protocols", netlink_protocols},
    {"mounts without nosuid", [] { return mounts_without("nosuid"); }},
    {"mounts without nodev", [] { return mounts_without("nodev"); }},
    {"devices", [] { return entries_of("/dev"); }},
    {"/sys", [] { return entries_of("/sys"); }},
    {"network interfaces", [] { return entries_of("/proc/sys/net/ipv4/conf"); }},
    {"files of /proc that speak", files_that_speak},
    {"signals that pid 1 is sent, and ignores", signals_that_pass_to_the_agent},
};

}  // namespace

std::span<const Attempt> paths() {
    return kPaths;
}
std::span<const Fact> facts() {
    return kFacts;
}

}  // namespace probe
