// E09: the doors of other instruction sets. Each child must be killed by SIGSYS before the call is
// made.
#include "attempt.h"

static void by_interrupt(void) {
    __asm__ volatile("int $0x80" : : "a"(359), "b"(38), "c"(5), "d"(0));
}
static void by_x32(void) {
    syscall(0x40000000 | SYS_socket, 38, 5, 0);
}

static void in_child(const char* what, void (*call)(void)) {
    const pid_t child = fork();
    if (child == 0) {
        call();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("%s\t%s\n", what, WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : "done");
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
#if defined(__x86_64__)
    in_child("int 0x80", by_interrupt);
    in_child("x32", by_x32);
#endif
    return 0;
}
