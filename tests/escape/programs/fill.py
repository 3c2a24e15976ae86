"""R05, R07: writes to the directory in argv until it is refused, and raises what refused it.

With `everywhere`: each writable mount in turn; prints the errors.
"""

import errno
import os
import sys

BLOCK = os.urandom(1 << 20)


def fill(directory: str) -> OSError:
    path = f"{directory}/filler"
    written = 0
    try:
        with open(path, "wb", buffering=0) as file:
            while True:
                written += file.write(BLOCK)
    except OSError as error:
        print(f"{directory}: {written >> 20} MiB until {errno.errorcode[error.errno or 0]}", flush=True)
        return error
    finally:
        if os.path.exists(path):
            os.unlink(path)


def writable_mounts() -> list[str]:
    points = [line.split()[4] for line in open("/proc/self/mountinfo")]
    return sorted({point for point in points if os.path.isdir(point) and os.access(point, os.W_OK)})


if sys.argv[1] == "everywhere":
    for mount in writable_mounts():
        fill(mount)
else:
    raise fill(sys.argv[1])
