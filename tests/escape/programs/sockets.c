// E09: every family, type and protocol of socket(); prints those that opened, `family type
// protocol`.
#include "attempt.h"

static void open_one(int family, int type, int protocol) {
    const int made = socket(family, type, protocol);
    if (made < 0) return;
    printf("open %d %d %d\n", family, type, protocol);
    close(made);
}

// The kernel looks at the lower half of an int only; a filter that compared all 64 bits would be
// blind here.
static void with_junk_above(int family, int type) {
    const long made = syscall(SYS_socket, family | (1L << 40), type | (1L << 40), 0L);
    attempt("a family with junk in its upper half", made);
    if (made >= 0) close((int)made);
}

int main(void) {
    for (int family = 0; family <= 64; ++family) {
        for (int type = 1; type <= 10; ++type) open_one(family, type, 0);
    }
    for (int protocol = 1; protocol <= 300; ++protocol) {
        for (int type = 1; type <= 6; ++type) {
            open_one(AF_INET, type, protocol);
            open_one(AF_INET6, type, protocol);
        }
        if (protocol <= 32) open_one(AF_NETLINK, SOCK_RAW, protocol);
    }
    with_junk_above(AF_PACKET, SOCK_RAW);
    with_junk_above(AF_ALG, SOCK_SEQPACKET);
    with_junk_above(AF_VSOCK, SOCK_STREAM);
    int pair[2];
    attempt("socketpair of a foreign family", socketpair(AF_TIPC, SOCK_SEQPACKET, 0, pair));
    attempt("io_uring_setup", syscall(SYS_io_uring_setup, 8, (char[128]){0}));
    attempt("io_uring_enter", syscall(SYS_io_uring_enter, 0, 1, 0, 0, 0, 0));
    attempt("io_uring_register", syscall(SYS_io_uring_register, 0, 0, 0, 0));
    must("socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    return 0;
}
