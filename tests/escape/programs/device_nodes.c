// E13: device nodes made here. A node of the host's first disk, its memory and a terminal.
#include <sys/sysmacros.h>

#include "attempt.h"

static void node(const char* directory, mode_t type, unsigned major_number, unsigned minor_number) {
    char path[128], what[192];
    snprintf(path, sizeof(path), "%s/node-%u-%u", directory, major_number, minor_number);
    snprintf(what, sizeof(what), "mknod %s", path);
    attempt(what, mknod(path, type | 0666, makedev(major_number, minor_number)));
    snprintf(what, sizeof(what), "open %s", path);
    attempt(what, open(path, O_RDWR));
}

int main(void) {
    static const char* const kDirectories[] = {"/tmp", "/home/user", "/dev/shm", "/dev", "/run"};
    for (size_t i = 0; i < sizeof(kDirectories) / sizeof(kDirectories[0]); ++i) {
        node(kDirectories[i], S_IFBLK, 8, 0);
        node(kDirectories[i], S_IFBLK, 254, 0);
        node(kDirectories[i], S_IFCHR, 1, 1);
        node(kDirectories[i], S_IFCHR, 5, 1);
        node(kDirectories[i], S_IFCHR, 10, 229);
    }
    must("a fifo", mknod("/tmp/fifo", S_IFIFO | 0600, 0));
    return 0;
}
