"""R19: forks until a process has the number in argv, and leaves it alive in a session of its own."""

import os
import sys
import time

wanted = int(sys.argv[1])
for tries in range(100_000):
    child = os.fork()
    if child == 0:
        if os.getpid() != wanted:
            os._exit(0)
        os.setsid()
        time.sleep(600)
        os._exit(0)
    if child == wanted:
        print("taken after", tries)
        break
    os.waitpid(child, 0)
