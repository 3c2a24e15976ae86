"""R13, R14, R16: code that does not stop when it is asked to. argv: which kind."""

import collections
import itertools
import os
import signal
import sys
import time

kind = sys.argv[1]
print("begun", flush=True)
if kind == "blocks":
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
    while True:
        pass
if kind == "in C":
    collections.deque(itertools.repeat(None), maxlen=0)
if kind == "child ignores":
    if os.fork() == 0:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        while True:
            time.sleep(1)
    while True:
        os.wait()
if kind == "stops its group":
    os.killpg(0, signal.SIGSTOP)
