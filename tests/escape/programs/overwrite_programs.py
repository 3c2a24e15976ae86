"""E06: programs that run, opened for writing: our own, pid 1's, the drivers, through every name they have."""

import errno
import glob
import os
import subprocess
import sys

AGENT = "/opt/cloister/bin/cloister-agent"
TARGETS = ["/proc/1/exe", AGENT, "/opt/cloister", "/opt/cloister/bin", "/opt/cloister/kernels"]
TARGETS += glob.glob("/opt/cloister/**/*.py", recursive=True) + glob.glob("/opt/cloister/bin/*")


def attempt(what: str, function, *arguments) -> None:
    try:
        function(*arguments)
        result = "done"
    except OSError as error:
        result = errno.errorcode[error.errno or 0]
    print(f"{what}\t{result}", flush=True)


def overwrite(path: str) -> None:
    if os.path.isdir(path):
        os.close(os.open(f"{path}/planted", os.O_CREAT | os.O_WRONLY))
    else:
        os.close(os.open(path, os.O_WRONLY))


for target in dict.fromkeys(TARGETS):
    attempt(f"write {target}", overwrite, target)
    attempt(f"truncate {target}", os.truncate, target, 0)
    attempt(f"replace {target}", os.rename, "/etc/hostname", target)
    attempt(f"unlink {target}", os.unlink, target)
    attempt(f"chmod {target}", os.chmod, target, 0o777)
# The race of CVE-2019-5736: while a program of ours begins, its /proc/PID/exe is written to.
for _ in range(50):
    child = subprocess.Popen([sys.executable, "-c", ""])
    try:
        descriptor = os.open(f"/proc/{child.pid}/exe", os.O_RDONLY)
        os.close(os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY))
        print("write a program that begins\tdone")
    except OSError as error:
        result = errno.errorcode[error.errno or 0]
    child.wait()
print(f"write a program that begins\t{result}")
