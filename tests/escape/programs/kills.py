"""R17, R18: code that takes away what it runs on. argv: what it does."""

import os
import signal
import sys

kind = sys.argv[1]
print("begun", flush=True)
if kind == "agent":
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP, signal.SIGSEGV):
        try:
            os.kill(1, number)
        except OSError:
            continue
if kind == "all":
    os.kill(-1, signal.SIGKILL)
if kind == "parent":
    os.kill(os.getppid(), signal.SIGKILL)
if kind == "itself":
    os.kill(os.getpid(), signal.SIGKILL)
if kind == "exit":
    os._exit(7)
if kind == "exec":
    os.execv("/usr/bin/true", ["true"])
if kind == "closes 0 to 2":
    os.closerange(0, 3)
if kind == "closes all":
    os.closerange(0, 65536)
if kind == "covers all":
    null = os.open("/dev/null", os.O_RDWR)
    for number in [int(name) for name in os.listdir("/proc/self/fd")]:
        if number != null:
            os.dup2(null, number)
if kind == "cuts a character":
    # A message of a driver that ends within a character that takes two escapes.
    text = b'{"msg_type":"\\ud83d\\ud'
    for name in os.listdir("/proc/self/fd"):
        try:
            os.write(int(name), len(text).to_bytes(4, "little") + text)
        except OSError:
            continue
if kind == "talks nonsense":
    for name in os.listdir("/proc/self/fd"):
        try:
            os.write(int(name), b"\xff" * 4096)
        except OSError:
            continue
