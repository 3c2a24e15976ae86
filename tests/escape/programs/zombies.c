// R15: `children` that nobody waits for, then `orphans` for pid 1 to bury.
#include "attempt.h"

int main(void) {
    int children = 0, orphans = 0;
    while (children < 10000) {
        const pid_t child = fork();
        if (child == 0) _exit(0);
        if (child < 0) break;
        ++children;
    }
    printf("children %d until %s\n", children, strerrorname_np(errno));
    while (waitpid(-1, NULL, 0) > 0) continue;
    while (orphans < 10000) {
        const pid_t child = fork();
        if (child == 0) {
            if (fork() == 0) _exit(0);
            _exit(0);
        }
        if (child < 0) {  // pid 1 needs a moment for those before
            usleep(1000);
            continue;
        }
        waitpid(child, NULL, 0);
        ++orphans;
    }
    printf("orphans %d\n", orphans);
    return 0;
}
