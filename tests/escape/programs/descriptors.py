"""R09: descriptors until they are refused; then more of them in flight over sockets; then in many processes."""

import array
import errno
import os
import socket
import sys


def open_all() -> str:
    kept = []
    try:
        while True:
            kept.append(os.open("/etc/hostname", os.O_RDONLY))
    except OSError as error:
        result = f"{len(kept)} until {errno.errorcode[error.errno or 0]}"
    for descriptor in kept:
        os.close(descriptor)
    return result


def in_flight() -> str:
    left, right = socket.socketpair()
    left.setblocking(False)
    message = array.array("i", [0] * 200)
    sent = 0
    try:
        while sent < 1 << 20:
            left.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, message)])
            sent += len(message)
    except OSError as error:
        return f"{sent} in flight until {errno.errorcode[error.errno or 0]}"
    return f"{sent} in flight"


print(open_all())
print(in_flight(), flush=True)
for _ in range(20):
    if os.fork() == 0:
        open_all()
        in_flight()
        os._exit(0)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
print("over", flush=True)
kept = []
while sys.argv[1:] == ["raise"]:
    kept.append(open("/etc/hostname"))
