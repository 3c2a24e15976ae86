// E11, E12: kernel parts with a long record of holes, and administration of the machine.
#include <sys/timex.h>

#include "attempt.h"

#define CALL(name, ...) attempt(#name, syscall(SYS_##name __VA_OPT__(, ) __VA_ARGS__))

static void keyrings(void) {
    CALL(keyctl, 0, -3, 1);
    CALL(add_key, "user", "a", "b", 1, -3);
    CALL(request_key, "user", "a", NULL, -3);
}

static void surfaces(void) {
    CALL(bpf, 0, (char[128]){0}, 128);
    CALL(perf_event_open, (char[128]){0}, 0, -1, -1, 0);
    CALL(userfaultfd, 0);
    CALL(userfaultfd, 1);
    attempt("/dev/userfaultfd", open("/dev/userfaultfd", O_RDWR));
    CALL(io_uring_setup, 8, (char[128]){0});
    CALL(io_setup, 8, (long[1]){0});
    CALL(fanotify_init, 0, 0);
    CALL(fanotify_mark, 0, 0, 0, 0, 0);
    CALL(memfd_secret, 0);
    CALL(remap_file_pages, 0, 4096, 0, 0, 0);
    CALL(open_by_handle_at, AT_FDCWD, (char[128]){0}, 0);
    CALL(name_to_handle_at, AT_FDCWD, "/", (char[128]){0}, (int[1]){0}, 0);
    attempt("lsm_get_self_attr", syscall(459, 100, 0, 0, 0));
    attempt("lsm_list_modules", syscall(461, 0, 0, 0));
    attempt("a call of the future", syscall(999));
#if defined(__x86_64__)
    CALL(modify_ldt, 0, (char[16]){0}, 16);
    CALL(iopl, 3);
    CALL(ioperm, 0x80, 1, 1);
    CALL(lookup_dcookie, 0, 0, 0);
#endif
}

static void administration(void) {
    CALL(init_module, "", 0, "");
    CALL(finit_module, 0, "", 0);
    CALL(delete_module, "loop", 0);
    CALL(kexec_load, 0, 0, 0, 0);
    CALL(kexec_file_load, -1, -1, 0, "", 0);
    CALL(reboot, 0xfee1dead, 0x28121969, 0x89abcdef, 0);
    CALL(swapon, "/tmp", 0);
    CALL(swapoff, "/tmp");
    CALL(acct, "/tmp/acct");
    CALL(quotactl, 0, "/", 0, 0);
    CALL(quotactl_fd, 0, 0, 0, 0);
    CALL(syslog, 3, (char[16]){0}, 16);
    CALL(sethostname, "evil", 4);
    CALL(setdomainname, "evil", 4);
    CALL(settimeofday, (char[16]){0}, NULL);
    CALL(clock_settime, 0, (char[16]){0});
    CALL(adjtimex, &(struct timex){.modes = ADJ_OFFSET});
    CALL(clock_adjtime, 0, &(struct timex){.modes = ADJ_OFFSET});
    CALL(vhangup);
    CALL(move_pages, 0, 0, NULL, NULL, NULL, 0);
    CALL(migrate_pages, 0, 0, NULL, NULL);
}

int main(void) {
    keyrings();
    surfaces();
    administration();
    return 0;
}
