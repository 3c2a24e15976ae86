"""Calls that lead out of a sandbox, or towards the kernel's less trodden parts, are denied to code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from conftest import Run, create_sandbox


@pytest.fixture(scope="module")
def sandbox(stranger: httpx.Client, client: httpx.Client) -> Iterator[dict[str, Any]]:
    """One for all cases, made after the server has started anew for the stranger: what is refused changes nothing."""
    made = create_sandbox(client)
    client.post(f"/v1/sandboxes/{made['id']}/runs", json={"code": "1"})  # its interpreter belongs to the start
    yield made
    assert client.delete(f"/v1/sandboxes/{made['id']}").status_code == 204


PRELUDE = """
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    result = getattr(libc, name)(*arguments)
    return errno.errorcode[ctypes.get_errno()] if result == -1 else f"done: {result}"
def syscall(number, *arguments):
    return call("syscall", ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
def attempt(function, *arguments):
    try:
        return f"done: {function(*arguments)}"
    except OSError as error:
        return errno.errorcode[error.errno]
"""

# What code tries, and the errors that are a refusal. x86_64 numbers where libc has no name for a call.
FORBIDDEN = {
    "mount tmpfs": ("call('mount', b'none', b'/tmp', b'tmpfs', 0, None)", {"EPERM"}),
    "remount root": ("call('mount', None, b'/', None, 32, None)", {"EPERM"}),
    "umount": ("call('umount2', b'/proc', 2)", {"EPERM"}),
    "pivot_root": ("syscall(155, b'/', b'/')", {"EPERM"}),
    "open_tree": ("syscall(428, -100, b'/', 1)", {"EPERM", "ENOSYS"}),
    "fsopen": ("syscall(430, b'tmpfs', 0)", {"EPERM", "ENOSYS"}),
    "chroot": ("call('chroot', b'/tmp')", {"EPERM"}),
    "new user namespace": ("call('unshare', 0x10000000)", {"EPERM"}),
    "new mount namespace": ("call('unshare', 0x00020000)", {"EPERM"}),
    "new network namespace": ("call('unshare', 0x40000000)", {"EPERM"}),
    "clone into a namespace": ("syscall(56, 0x10000000 | 17, 0, 0, 0, 0)", {"EPERM"}),
    "clone3": ("syscall(435, 0, 0)", {"ENOSYS"}),
    "setns": ("call('setns', os.open('/proc/self/ns/net', 0), 0)", {"EPERM"}),
    "ptrace of pid 1": ("syscall(101, 16, 1, 0, 0)", {"EPERM"}),
    "ptrace of its own child": ("syscall(101, 0, 0, 0, 0)", {"EPERM"}),
    "read another's memory": ("syscall(310, 1, 0, 0, 0, 0, 0)", {"EPERM"}),
    "pidfd_getfd": ("syscall(438, 0, 0, 0)", {"EPERM"}),
    "keyctl": ("syscall(250, 0, -3, 1)", {"EPERM"}),
    "add_key": ("syscall(248, b'user', b'a', b'b', 1, -3)", {"EPERM"}),
    "bpf": ("syscall(321, 0, 0, 0)", {"EPERM"}),
    "perf_event_open": ("syscall(298, 0, 0, -1, -1, 0)", {"EPERM"}),
    "userfaultfd": ("syscall(323, 0)", {"EPERM"}),
    "io_uring_setup": ("syscall(425, 8, 0)", {"ENOSYS"}),
    "splice": ("syscall(275, 0, 0, 1, 0, 1, 0)", {"ENOSYS"}),
    "init_module": ("syscall(175, 0, 0, b'')", {"EPERM"}),
    "kexec_load": ("syscall(246, 0, 0, 0, 0)", {"EPERM"}),
    "reboot": ("call('reboot', 0x1234567)", {"EPERM"}),
    "swapon": ("call('swapon', b'/tmp', 0)", {"EPERM"}),
    "syslog": ("call('klogctl', 3, None, 0)", {"EPERM"}),
    "open_by_handle_at": ("syscall(304, -100, 0, 0)", {"EPERM"}),
    "settimeofday": ("call('settimeofday', ctypes.create_string_buffer(16), None)", {"EPERM"}),
    "sethostname": ("call('sethostname', b'evil', 4)", {"EPERM"}),
    "iopl": ("syscall(172, 3)", {"EPERM"}),
    "raw socket": ("attempt(socket.socket, socket.AF_INET, socket.SOCK_RAW, 1)", {"EPERM", "EACCES"}),
    "packet socket": ("attempt(socket.socket, socket.AF_PACKET, socket.SOCK_RAW)", {"EAFNOSUPPORT", "EPERM"}),
    "vsock": ("attempt(socket.socket, 40, socket.SOCK_STREAM)", {"EAFNOSUPPORT"}),
    "algorithm socket": ("attempt(socket.socket, 38, socket.SOCK_SEQPACKET)", {"EAFNOSUPPORT"}),
    "netfilter netlink": ("attempt(socket.socket, socket.AF_NETLINK, socket.SOCK_RAW, 12)", {"EAFNOSUPPORT", "EPERM"}),
    "device node": ("attempt(os.mknod, '/tmp/disk', 0o60600, os.makedev(8, 0))", {"EPERM"}),
    "become root": ("attempt(os.setuid, 0)", {"EPERM"}),
    "become the agent": ("attempt(os.setuid, 65533)", {"EPERM"}),
    "signal the agent": ("attempt(os.kill, 1, 9)", {"EPERM"}),
    "agent's environment": ("attempt(open, '/proc/1/environ', 'rb')", {"EACCES", "EPERM"}),
    "agent's memory": ("attempt(open, '/proc/1/mem', 'rb')", {"EACCES", "EPERM"}),
    "agent's root": ("attempt(os.listdir, '/proc/1/root')", {"EACCES", "EPERM"}),
    "more namespaces by sysctl": (
        "attempt(open, '/proc/sys/user/max_user_namespaces', 'w')",
        {"EACCES", "EPERM", "EROFS"},
    ),
}


@pytest.mark.parametrize(("attempt", "refusals"), FORBIDDEN.values(), ids=FORBIDDEN.keys())
def test_forbidden(attempt: str, refusals: set[str], run: Run) -> None:
    done = run(f"{PRELUDE}\nprint({attempt})")
    assert done["stdout"]["text"].strip() in refusals, done.get("error")


def test_pushing_keys_into_a_terminal(run: Run) -> None:
    """TIOCSTI writes into the input of whoever reads the terminal; also with junk in the upper half of the word."""
    code = """
import fcntl, pty
controller, terminal = pty.openpty()
for request in (0x5412, 0x541C):
    print(attempt(fcntl.ioctl, terminal, request, b"x"))
print(syscall(16, terminal, 0x5412 | (1 << 32), b"x"))
"""
    assert run(PRELUDE + code)["stdout"]["text"] == "EPERM\nEPERM\nEPERM\n"


def test_the_old_system_call_door_is_deadly(run: Run) -> None:
    """int 0x80 enters the 32-bit table, which the filter does not know: the process is killed."""
    code = """
import mmap, signal, subprocess, sys
child = '''
import ctypes, mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3]))
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))())
'''
done = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True)
print(-done.returncode == signal.SIGSYS, done.stdout)
"""
    assert run(PRELUDE + code)["stdout"]["text"].strip() == "True"


def test_what_is_needed_still_works(run: Run) -> None:
    """The filters must not cost what ordinary programs use."""
    code = """
import multiprocessing, os, socket, subprocess, tempfile, threading
threading.Thread(target=print, args=("thread",)).start()
print(subprocess.run(["bash", "-c", "echo child | cat"], capture_output=True, text=True).stdout, end="")
with multiprocessing.get_context("fork").Pool(2) as pool: print(sum(pool.map(abs, [-1, -2])))
print(attempt(os.mkfifo, "/tmp/fifo"))
print(attempt(socket.socket, socket.AF_NETLINK, socket.SOCK_RAW, 0)[:4])
left, right = socket.socketpair(); left.send(b"pair"); print(right.recv(4).decode())
with tempfile.TemporaryFile() as file: file.write(b"x"); print(file.tell())
"""
    assert run(PRELUDE + code)["stdout"]["text"] == "thread\nchild\n3\ndone: None\ndone\npair\n1\n"
