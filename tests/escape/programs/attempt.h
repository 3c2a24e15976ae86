// For hostile C programs: each attempt is one line, `what TAB done`, or the name of the error that
// refused it.
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

// Must be refused.
static inline void attempt(const char* what, long result) {
    printf("%s\t%s\n", what, result >= 0 ? "done" : strerrorname_np(errno));
    fflush(stdout);
}

// Must succeed: what ordinary programs need.
static inline void must(const char* what, long result) {
    printf("must %s\t%s\n", what, result >= 0 ? "done" : strerrorname_np(errno));
    fflush(stdout);
}
