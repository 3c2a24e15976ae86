"""R02: 200 daemons in sessions of their own, whose parents are gone, and which ignore what can be ignored."""

import os
import signal
import time

for _ in range(200):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(1, 65):
                if number not in (signal.SIGKILL, signal.SIGSTOP, 32, 33):
                    signal.signal(number, signal.SIG_IGN)
            while True:
                time.sleep(60)
        os._exit(0)
    os.wait()
print("daemons", sum(name.isdigit() for name in os.listdir("/proc")))
