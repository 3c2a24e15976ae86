"""E14: becoming somebody else: set-user-id files of the image and our own, file capabilities, su and its kin."""

import ctypes
import errno
import os
import shutil
import subprocess
import sys

PROBE = "/home/user/probe"  # a copy of `id` that root made set-user-id, if root was here before
libc = ctypes.CDLL(None, use_errno=True)


def attempt(what: str, function, *arguments) -> None:
    try:
        function(*arguments)
        result = "done"
    except OSError as error:
        result = errno.errorcode[error.errno or 0]
    print(f"{what}\t{result}", flush=True)


def effective_id(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.stdout.strip() or f"exit {done.returncode}"


def status(field: str) -> str:
    lines = open("/proc/self/status").read().splitlines()
    return next(line.split(":", 1)[1].strip() for line in lines if line.startswith(field + ":"))


def set_id_files() -> list[str]:
    command = "find / -xdev \\( -perm -4000 -o -perm -2000 \\) -type f 2>/dev/null; true"
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True).stdout.split()


def plant() -> None:
    """As root: a set-user-id copy of `id`, and one with capabilities."""
    shutil.copy("/usr/bin/id", PROBE)
    os.chown(PROBE, 0, 0)
    os.chmod(PROBE, 0o6755)
    print("planted", oct(os.stat(PROBE).st_mode & 0o7777))


if sys.argv[1:] == ["plant"]:
    plant()
for field in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Uid", "Gid", "Groups"):
    print(field, *status(field).split())
if os.path.exists(PROBE):
    print("probe", effective_id([PROBE, "-u"]))
print("set-id files", *set_id_files())
print("su", effective_id(["su", "-c", "id -u"]))
mine = f"/tmp/mine-{os.getuid()}"
shutil.copy("/usr/bin/id", mine)
os.chmod(mine, 0o6755)
print("mine", effective_id([mine, "-u"]))
cap_setuid = bytes.fromhex("0100000280000000000000000000000000000000")  # +ep, revision 2
attempt("file capability", os.setxattr, mine, "security.capability", cap_setuid)
attempt("setuid of the agent", os.setresuid, 65533, 65533, 65533)
attempt("setuid of an id that is not mapped", os.setresuid, 5000, 5000, 5000)
if os.getuid() != 0:
    attempt("setuid 0", os.setuid, 0)
    attempt("setgid 0", os.setgid, 0)
    attempt("setgroups", os.setgroups, [0])
    attempt("chown to root", os.chown, mine, 0, 0)
print("end", os.getuid(), os.geteuid())
