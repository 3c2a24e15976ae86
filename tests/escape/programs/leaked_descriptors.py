"""E07: what a program finds open when it begins, and whether any of it leads out of the sandbox."""

import errno
import os

# Without our own: the directory that is being listed.
numbers = [int(name) for name in os.listdir("/proc/self/fd")]
for number in numbers:
    try:
        target = os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        continue
    print(f"fd {number} {target}")
    for way in ("..", "../../../..", "etc/shadow"):
        try:
            os.close(os.open(way, os.O_RDONLY, dir_fd=number))
            print(f"{way} from {number}\tdone")
        except OSError as error:
            print(f"{way} from {number}\t{errno.errorcode[error.errno or 0]}")
    try:
        os.chdir(f"/proc/self/fd/{number}")
        print(f"chdir to {number}\tdone")
    except OSError as error:
        print(f"chdir to {number}\t{errno.errorcode[error.errno or 0]}")
print("cwd", os.getcwd())
