"""R20: every way to get more of the processor than one's share, then as much work as there is."""

import errno
import os
import threading
import time


def attempt(what: str, function, *arguments) -> None:
    try:
        function(*arguments)
        result = "done"
    except OSError as error:
        result = errno.errorcode[error.errno or 0]
    print(f"{what}\t{result}", flush=True)


attempt("nice -20", os.setpriority, os.PRIO_PROCESS, 0, -20)
attempt("nice -1", os.nice, -1)
for policy in (os.SCHED_FIFO, os.SCHED_RR):
    attempt(f"policy {policy}", os.sched_setscheduler, 0, policy, os.sched_param(1))
attempt("the scheduler of pid 1", os.sched_setaffinity, 1, {0})
print("cpus", len(os.sched_getaffinity(0)))
end = time.monotonic() + 3
for _ in range(7):
    if os.fork() == 0:
        for _ in range(3):
            threading.Thread(target=lambda: [None for _ in iter(lambda: time.monotonic() < end, False)]).start()
        while time.monotonic() < end:
            pass
        os._exit(0)
while time.monotonic() < end:
    pass
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
