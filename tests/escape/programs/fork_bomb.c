// R01: forks until it cannot, in every child too. The first process ends when it is refused, so
// that the run does; the rest go on trying.
#include "attempt.h"

int main(void) {
    const pid_t first = getpid();
    for (;;) {
        if (fork() >= 0 || getpid() != first) continue;
        fprintf(stderr, "fork: %s\n", strerrorname_np(errno));
        _exit(1);
    }
}
