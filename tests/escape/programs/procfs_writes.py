"""E04: settings of the kernel and of other processes that lie in /proc; each must refuse to be written."""

import errno
import os

PATHS = [
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/core_uses_pid",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/hotplug",
    "/proc/sys/kernel/poweroff_cmd",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/domainname",
    "/proc/sys/kernel/ns_last_pid",
    "/proc/sys/kernel/pid_max",
    "/proc/sys/kernel/sysrq",
    "/proc/sys/kernel/randomize_va_space",
    "/proc/sys/kernel/yama/ptrace_scope",
    "/proc/sys/kernel/shmmax",
    "/proc/sys/kernel/msgmax",
    "/proc/sys/kernel/sem",
    "/proc/sys/fs/binfmt_misc/register",
    "/proc/sys/fs/mqueue/queues_max",
    "/proc/sys/fs/protected_symlinks",
    "/proc/sys/fs/suid_dumpable",
    "/proc/sys/fs/file-max",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sys/net/ipv4/ip_unprivileged_port_start",
    "/proc/sys/net/ipv4/ping_group_range",
    "/proc/sys/net/core/somaxconn",
    "/proc/sys/user/max_user_namespaces",
    "/proc/sys/vm/drop_caches",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sysrq-trigger",
    "/proc/self/uid_map",
    "/proc/self/gid_map",
    "/proc/self/setgroups",
    "/proc/1/oom_score_adj",
    "/proc/1/oom_adj",
    "/proc/1/uid_map",
    "/proc/1/attr/current",
    "/proc/1/coredump_filter",
    "/proc/kcore",
    "/proc/kmsg",
    "/proc/mtrr",
    "/proc/irq/default_smp_affinity",
    "/proc/bus/pci/devices",
    "/proc/scsi/scsi",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/uptime",
    "/proc/loadavg",
    "/proc/cpuinfo",
]
# What must not even be readable: keys and addresses of the host, or how busy it is.
HIDDEN = ["/proc/kcore", "/proc/kmsg", "/proc/timer_list", "/proc/sched_debug", "/proc/kallsyms", "/proc/latency_stats"]
HIDDEN += ["/proc/keys", "/proc/key-users", "/proc/interrupts", "/proc/modules", "/proc/config.gz", "/proc/vmallocinfo"]
HIDDEN += ["/proc/slabinfo", "/proc/pagetypeinfo", "/proc/acpi", "/proc/scsi", "/proc/asound", "/proc/sysrq-trigger"]


null = os.open("/dev/null", os.O_WRONLY)


def write(path: str) -> str:
    try:
        descriptor = os.open(path, os.O_WRONLY)
        if os.path.sameopenfile(descriptor, null):
            return "ENODATA"  # hidden behind /dev/null
        os.write(descriptor, b"0\n")
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "done"


def content(path: str) -> str:
    """`done` if anything can be read there."""
    try:
        seen = os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(64)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "done" if seen else "ENODATA"


for path in PATHS:
    print(f"write {path}\t{write(path)}")
for path in HIDDEN:
    print(f"read {path}\t{content(path)}")
print(f"read /sys\t{content('/sys')}")
print(f"read /sys/fs/cgroup\t{content('/sys/fs/cgroup')}")
