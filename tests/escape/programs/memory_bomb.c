// R03: eight children that each take memory until somebody stops them.
#include "attempt.h"

int main(void) {
    for (int i = 0; i < 8; ++i) {
        if (fork() != 0) continue;
        for (;;) {
            char* block = malloc(1 << 20);
            if (block != NULL) memset(block, 1, 1 << 20);
        }
    }
    while (wait(NULL) > 0) continue;
    return 0;
}
