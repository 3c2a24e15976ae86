"""R19: forks until a process has the number in argv, and leaves it alive in a session of its own."""

import os
import sys
import time

wanted = int(sys.argv[1])
read, write = os.pipe()
for tries in range(100_000):
    child = os.fork()
    if child == 0:
        if os.getpid() != wanted:
            os._exit(0)
        os.setsid()
        os.write(write, b"!")
        time.sleep(600)
        os._exit(0)
    if child == wanted:
        os.read(read, 1)  # not before it has left the process group of this run, which ends with the run
        print("taken after", tries)
        break
    os.waitpid(child, 0)
