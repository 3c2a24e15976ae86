"""R10: BYTES of output, as fast as they are taken."""

import os
import sys

left = int(sys.argv[1])
block = b"x" * 127 + b"\n"
block *= 8192
while left > 0:
    left -= os.write(1, block[: min(left, len(block))])
