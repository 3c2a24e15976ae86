// E15: pushing keys into a terminal, also our own controlling one; and the terminal of whoever
// started us.
#include <pty.h>

#include "attempt.h"

int main(void) {
    attempt("/dev/tty", open("/dev/tty", O_RDWR));
    attempt("/dev/console", open("/dev/console", O_RDWR));
    attempt("/dev/tty0", open("/dev/tty0", O_RDWR));
    int controller, terminal;
    must("a terminal of our own", openpty(&controller, &terminal, NULL, NULL, NULL));
    for (int round = 0; round < 2; ++round) {
        attempt("TIOCSTI", ioctl(terminal, TIOCSTI, "x"));
        attempt("TIOCLINUX", ioctl(terminal, TIOCLINUX, "\2x"));
        attempt("TIOCSTI with junk above", syscall(SYS_ioctl, terminal, TIOCSTI | (1L << 32), "x"));
        if (round == 0 && fork() == 0) {
            setsid();
            must("our controlling terminal", ioctl(terminal, TIOCSCTTY, 0));
            continue;
        }
        wait(NULL);
        break;
    }
    return 0;
}
