// R04: a C stack without an end.
#include "attempt.h"

static volatile int depth;
static int deeper(int level) {
    volatile char frame[4096];
    frame[0] = (char)level;
    depth = level;
    return deeper(level + 1) + frame[0];
}

int main(void) {
    return deeper(1);
}
