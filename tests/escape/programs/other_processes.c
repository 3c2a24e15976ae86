// E08: the agent's memory, descriptors and limits, and signals to it. The same for pid 1 by every
// door.
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "attempt.h"

static void files_of_the_agent(void) {
    static const char* const kFiles[] = {
        "mem", "maps",   "smaps", "environ", "auxv", "stack",     "syscall", "io",
        "fd",  "fdinfo", "cwd/",  "root/",   "exe",  "map_files", "pagemap", "personality"};
    char path[64], what[96];
    for (size_t i = 0; i < sizeof(kFiles) / sizeof(kFiles[0]); ++i) {
        snprintf(path, sizeof(path), "/proc/1/%s", kFiles[i]);
        snprintf(what, sizeof(what), "read %s", path);
        char byte;
        const int file = open(path, O_RDONLY);
        // Directories are refused at open or at the first listing.
        const long got = file < 0 ? -1 : syscall(SYS_getdents64, file, (char[4096]){0}, 4096);
        attempt(what, file < 0           ? -1
                      : got >= 0         ? got
                      : errno == ENOTDIR ? read(file, &byte, 1)
                                         : -1);
    }
    attempt("write /proc/1/mem", open("/proc/1/mem", O_RDWR));
    attempt("write /proc/1/oom_score_adj", open("/proc/1/oom_score_adj", O_WRONLY));
    attempt("write /proc/1/comm", open("/proc/1/comm", O_WRONLY));
}

static void signals_to_the_agent(void) {
    char what[64];
    for (int number = 1; number < 65; ++number) {
        snprintf(what, sizeof(what), "signal %d", number);
        attempt(what, kill(1, number));
    }
    siginfo_t info = {.si_code = SI_QUEUE};
    attempt("tgkill", syscall(SYS_tgkill, 1, 1, SIGSTOP));
    attempt("rt_sigqueueinfo", syscall(SYS_rt_sigqueueinfo, 1, SIGTERM, &info));
    const int first = syscall(SYS_pidfd_open, 1, 0);
    attempt("pidfd_send_signal",
            first < 0 ? -1 : syscall(SYS_pidfd_send_signal, first, SIGTERM, NULL, 0));
}

static void scheduling_of_the_agent(void) {
    const struct rlimit none = {0, 0};
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    const struct sched_param idle = {0};
    attempt("prlimit", prlimit(1, RLIMIT_NOFILE, &none, NULL));
    attempt("affinity", sched_setaffinity(1, sizeof(first), &first));
    attempt("scheduler", sched_setscheduler(1, SCHED_IDLE, &idle));
    attempt("nice", setpriority(PRIO_PROCESS, 1, 19));
    attempt("I/O priority", syscall(SYS_ioprio_set, 1, 1, 3 << 13));
}

int main(void) {
    char buffer[16];
    struct iovec here = {buffer, sizeof(buffer)}, there = {(void*)0x400000, sizeof(buffer)};
    attempt("ptrace attach", ptrace(PTRACE_ATTACH, 1, 0, 0));
    attempt("ptrace seize", ptrace(PTRACE_SEIZE, 1, 0, 0));
    attempt("ptrace of a child", ptrace(PTRACE_TRACEME, 0, 0, 0));
    attempt("process_vm_readv", process_vm_readv(1, &here, 1, &there, 1, 0));
    attempt("process_vm_writev", process_vm_writev(1, &here, 1, &there, 1, 0));
    const int first = syscall(SYS_pidfd_open, 1, 0);
    attempt("pidfd_getfd", syscall(SYS_pidfd_getfd, first, 3, 0));
    attempt("process_madvise", syscall(SYS_process_madvise, first, &there, 1, MADV_COLD, 0));
    attempt("kcmp", syscall(SYS_kcmp, getpid(), 1, 0, 0, 0));
    attempt("move_pages", syscall(SYS_move_pages, 1, 0, NULL, NULL, NULL, 0));
    attempt("migrate_pages", syscall(SYS_migrate_pages, 1, 0, NULL, NULL));
    files_of_the_agent();
    scheduling_of_the_agent();
    signals_to_the_agent();
    return 0;
}
