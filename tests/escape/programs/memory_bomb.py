"""R03, R06: memory of the interpreter itself, or of a file that is nowhere (`memfd`)."""

import os
import sys

print("begun", flush=True)
kept = []
if sys.argv[1:] == ["memfd"]:
    file = os.memfd_create("kept")
    while True:
        os.write(file, b"x" * (1 << 20))
while True:
    kept.append(bytearray(b"x") * (1 << 20))
