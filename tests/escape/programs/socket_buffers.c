// R06: memory that is in no file and no process: buffers of pipes or sockets. It prints how much it
// holds when it is refused more; being killed for it is as good.
#include "attempt.h"

static long fill(int file) {
    static char block[65536];
    long total = 0;
    fcntl(file, F_SETFL, O_NONBLOCK);
    for (long got; (got = write(file, block, sizeof(block))) > 0;) total += got;
    return total;
}

static void hold(int pipes) {
    long total = 0;
    for (int ends[2]; (pipes ? pipe(ends) : socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) == 0;) {
        if (pipes)
            fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
        else
            setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &(int){1 << 24}, sizeof(int));
        total += fill(ends[1]);
    }
    printf("held %ld bytes until %s\n", total, strerrorname_np(errno));
    fflush(stdout);
    sleep(1);
}

int main(int argc, char** argv) {
    const int pipes = argc > 1 && strcmp(argv[1], "pipes") == 0;
    for (int i = 0; i < 15; ++i) {
        if (fork() != 0) continue;
        hold(pipes);
        _exit(0);
    }
    hold(pipes);
    while (wait(NULL) > 0) continue;
    return 0;
}
