#include "jail/mount_tree.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <initializer_list>

#include "base/limits.h"
#include "jail/nest_root.h"

namespace cloister::jail {
namespace {

constexpr unsigned kQuiet = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

struct Option {
    const char* key;
    const char* value;
};

int make_mount(const Steps& steps, const char* type, std::initializer_list<Option> options,
               unsigned attributes) {
    const auto context = static_cast<int>(steps.must(::fsopen(type, FSOPEN_CLOEXEC)));
    for (const Option& option : options) {
        steps.must(::fsconfig(context, FSCONFIG_SET_STRING, option.key, option.value, 0));
    }
    steps.must(::fsconfig(context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0));
    const auto made = static_cast<int>(steps.must(::fsmount(context, FSMOUNT_CLOEXEC, attributes)));
    ::close(context);
    return made;
}

// A directory or file below `root` that no symbolic link of the image has a say in.
int open_beneath(int root, const char* path) {
    open_how how{};
    how.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW;
    how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
    return static_cast<int>(::syscall(SYS_openat2, root, path, &how, sizeof(how)));
}

void place_on(const Steps& steps, int mount, int target) {
    steps.must(
        ::move_mount(mount, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
}

void place(const Steps& steps, int mount, const char* path) {
    const auto target = static_cast<int>(steps.must(open_beneath(AT_FDCWD, path)));
    place_on(steps, mount, target);
    ::close(target);
    ::close(mount);
}

int copy_of(const Steps& steps, const char* path) {
    return static_cast<int>(steps.must(
        ::open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW)));
}

int read_only_copy(const Steps& steps, const char* path) {
    const int copy = copy_of(steps, path);
    mount_attr read_only{};
    read_only.attr_set =
        MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
    steps.must(::mount_setattr(copy, "", AT_EMPTY_PATH, &read_only, sizeof(read_only)));
    return copy;
}

void ensure_directory(const Steps& steps, const char* path) {
    if (::mkdir(path, 0755) != 0 && errno != EEXIST) steps.fail(errno);
}

// Everything that must be made while the nest's tree is still in sight: the kernel shows a new
// /proc only to who can see a whole one already, and device nodes are copies of the nest's.
struct Parts {
    int proc = -1;
    std::array<int, kNestDevices.size()> devices{};
};

Parts make_parts(Steps& steps, std::initializer_list<Option> of_proc) {
    steps.at(Stage::Mounts);
    Parts parts;
    parts.proc = make_mount(steps, "proc", of_proc, kQuiet | MOUNT_ATTR_NOEXEC);
    for (size_t i = 0; i < kNestDevices.size(); ++i) {
        std::array<char, 32> path{};
        std::snprintf(path.data(), path.size(), "/dev/%s", kNestDevices[i]);
        parts.devices[i] = copy_of(steps, path.data());
    }
    return parts;
}

void enter_root(Steps& steps, int root) {
    steps.at(Stage::Root);
    place(steps, root, kNestRootPlace);
    steps.must(::chdir(kNestRootPlace));
    steps.must(::syscall(SYS_pivot_root, ".", "."));
    steps.must(::umount2(".", MNT_DETACH));  // the old root, which lies on top after the pivot
    steps.must(::chdir("/"));
}

void mount_runtime(Steps& steps, int runtime) {
    steps.at(Stage::Runtime);
    ensure_directory(steps, "/opt");
    ensure_directory(steps, "/opt/cloister");
    place(steps, runtime, "/opt/cloister");
}

void make_links(const Steps& steps) {
    steps.must(::symlink("/proc/self/fd", "/dev/fd"));
    steps.must(::symlink("/proc/self/fd/0", "/dev/stdin"));
    steps.must(::symlink("/proc/self/fd/1", "/dev/stdout"));
    steps.must(::symlink("/proc/self/fd/2", "/dev/stderr"));
    steps.must(::symlink("pts/ptmx", "/dev/ptmx"));
}

void place_devices(const Steps& steps, const Parts& parts) {
    for (size_t i = 0; i < kNestDevices.size(); ++i) {
        std::array<char, 32> path{};
        std::snprintf(path.data(), path.size(), "/dev/%s", kNestDevices[i]);
        ::close(
            static_cast<int>(steps.must(::open(path.data(), O_CREAT | O_EXCL | O_CLOEXEC, 0666))));
        place(steps, parts.devices[i], path.data());
    }
}

constexpr uint64_t kShmPerFile = 4096;  // bytes of /dev/shm for each file that it can hold

void make_device_nodes(Steps& steps, const Parts& parts) {
    steps.at(Stage::Devices);
    place(steps,
          make_mount(steps, "tmpfs", {{"size", "64k"}, {"nr_inodes", "128"}, {"mode", "0755"}},
                     kQuiet | MOUNT_ATTR_NOEXEC),
          "/dev");
    place_devices(steps, parts);
}

void make_dev(Steps& steps, const Parts& parts, uint64_t shm_bytes) {
    make_device_nodes(steps, parts);
    constexpr unsigned kTerminals = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
    std::array<char, 32> shm_size{};
    std::array<char, 32> run_size{};
    std::snprintf(shm_size.data(), shm_size.size(), "%" PRIu64, shm_bytes);
    // An empty file costs the kernel about 1 KiB, which counts as the sandbox's memory.
    std::array<char, 32> shm_files{};
    std::snprintf(shm_files.data(), shm_files.size(), "%" PRIu64, shm_bytes / kShmPerFile);
    std::snprintf(run_size.data(), run_size.size(), "%" PRIu64, limits::kRunTmpfsMax);
    make_links(steps);
    ensure_directory(steps, "/dev/pts");
    ensure_directory(steps, "/dev/shm");
    place(steps,
          make_mount(steps, "devpts", {{"ptmxmode", "0666"}, {"mode", "0620"}, {"gid", "5"}},
                     kTerminals),
          "/dev/pts");
    place(steps,
          make_mount(steps, "tmpfs",
                     {{"size", shm_size.data()}, {"nr_inodes", shm_files.data()}, {"mode", "1777"}},
                     kQuiet | MOUNT_ATTR_NOEXEC),
          "/dev/shm");
    place(steps,
          make_mount(steps, "tmpfs",
                     {{"size", run_size.data()}, {"nr_inodes", "4096"}, {"mode", "0755"}}, kQuiet),
          "/run");
}

constexpr const char* kCovers = "/run";
constexpr const char* kEmptyFile = "/run/empty";
constexpr const char* kEmptyDirectory = "/run/none";
constexpr std::array kViewNames = {"meminfo", "cpuinfo", "stat", "uptime", "loadavg"};
static_assert(kViewNames.size() == birth::kProcFiles);  // in the order of birth::ProcFile
// What /proc/cpuinfo says of one processor, at most.
constexpr size_t kCpuinfoBlock = 4 * limits::kKiB;

// Files of /proc that tell of the host or reach into it: covered by an empty one.
constexpr std::array kMaskedFiles = {
    "/proc/kcore",  // the machine's memory
    "/proc/keys",   // keyrings of the host
    "/proc/key-users",
    "/proc/kmsg",      // the kernel's log
    "/proc/kallsyms",  // addresses in the kernel
    "/proc/modules",       "/proc/config.gz",    "/proc/slabinfo",
    "/proc/vmallocinfo",   "/proc/pagetypeinfo",
    "/proc/cmdline",     // how the host was booted, which may name its disks and secrets
    "/proc/swaps",       // swap that the sandbox does not have
    "/proc/interrupts",  // what the neighbours do, by timing, from here …
    "/proc/softirqs",      "/proc/schedstat",    "/proc/diskstats",
    "/proc/latency_stats", "/proc/timer_list",   "/proc/timer_stats",
    "/proc/sched_debug",  // … to here
    "/proc/mtrr",
};
// Directories likewise: covered by an empty one.
constexpr std::array kMaskedDirectories = {
    "/proc/acpi", "/proc/asound", "/proc/scsi",
    "/proc/pressure",  // how the whole host waits
};
// Shown, but never written through.
constexpr std::array kReadOnly = {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
                                  "/proc/sysrq-trigger"};

// Covers `path` with a read-only copy of `cover`, if the kernel has such a file at all.
void cover_if_there(const Steps& steps, const char* path, const char* cover) {
    if (::access(path, F_OK) == 0) place(steps, read_only_copy(steps, cover), path);
}

// No user namespace can be made inside: the limit is this user namespace's own, and its file is
// read-only next.
void forbid_user_namespaces(const Steps& steps) {
    const auto file = static_cast<int>(
        steps.must(::open("/proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC)));
    steps.must(::write(file, "0", 1));
    ::close(file);
}

void mask_proc(Steps& steps) {
    steps.at(Stage::Masks);
    forbid_user_namespaces(steps);
    for (const char* path : kMaskedFiles) cover_if_there(steps, path, kEmptyFile);
    for (const char* path : kMaskedDirectories) cover_if_there(steps, path, kEmptyDirectory);
    for (const char* path : kReadOnly) cover_if_there(steps, path, path);
}

// --- The sandbox's own figures in /proc ---

void write_proc_path(std::array<char, 32>& path, const char* directory, const char* name) {
    std::snprintf(path.data(), path.size(), "%s/%s", directory, name);
}

// A tiny file system with the files that cover others: those of the view, an empty file and an
// empty directory. A file can be mounted a second time only from a tree that is attached, so for a
// while it lies in /run, which gets its own file system afterwards.
ProcView make_covers(Steps& steps) {
    steps.at(Stage::ProcView);
    place(steps,
          make_mount(steps, "tmpfs", {{"size", "1m"}, {"nr_inodes", "16"}, {"mode", "0755"}},
                     kQuiet | MOUNT_ATTR_NOEXEC),
          kCovers);
    constexpr int kNew = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
    ProcView view{};
    std::array<char, 32> path{};
    for (size_t i = 0; i < kViewNames.size(); ++i) {
        write_proc_path(path, kCovers, kViewNames[i]);
        view[i] = static_cast<int>(steps.must(::open(path.data(), kNew, 0444)));
    }
    ::close(static_cast<int>(steps.must(::open(kEmptyFile, kNew, 0444))));
    steps.must(::mkdir(kEmptyDirectory, 0555));
    return view;
}

void copy_cpuinfo(Steps& steps, int target, uint32_t cpu) {
    steps.at(Stage::ProcView);
    const auto source = static_cast<int>(steps.must(::open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC)));
    std::array<char, kCpuinfoBlock> piece{};
    size_t left = cpu * kCpuinfoBlock;
    while (left > 0) {
        const long got = steps.must(::read(source, piece.data(), std::min(left, piece.size())));
        if (got == 0) break;
        steps.must(::write(target, piece.data(), static_cast<size_t>(got)));
        left -= static_cast<size_t>(got);
    }
    ::close(source);
}

void show_own_figures(Steps& steps) {
    steps.at(Stage::ProcView);
    for (const char* name : kViewNames) {
        std::array<char, 32> from{}, over{};
        write_proc_path(from, kCovers, name);
        write_proc_path(over, "/proc", name);
        place(steps, read_only_copy(steps, from.data()), over.data());
    }
}

}  // namespace

ProcView build_mount_tree(Steps& steps, const MountTree& tree) {
    const Parts parts = make_parts(steps, {});
    enter_root(steps, tree.root);
    mount_runtime(steps, tree.runtime);
    steps.at(Stage::Proc);
    place(steps, parts.proc, "/proc");
    const ProcView view = make_covers(steps);
    copy_cpuinfo(steps, view[birth::kCpuinfo], tree.cpu);
    mask_proc(steps);
    show_own_figures(steps);
    steps.must(::umount2(kCovers, MNT_DETACH));
    make_dev(steps, parts, tree.shm_bytes);
    return view;
}

void build_zygote_tree(Steps& steps, int root, int runtime) {
    const Parts parts = make_parts(steps, {{"subset", "pid"}});
    enter_root(steps, root);
    steps.at(Stage::Runtime);
    place(steps, runtime, "/opt/cloister");
    steps.at(Stage::Proc);
    place(steps, parts.proc, "/proc");
    make_device_nodes(steps, parts);
    place(steps,
          make_mount(steps, "tmpfs", {{"size", "8m"}, {"nr_inodes", "256"}, {"mode", "1777"}},
                     kQuiet | MOUNT_ATTR_NOEXEC),
          "/tmp");
}

}  // namespace cloister::jail
