"""R11: BYTES without a newline: every byte value, invalid UTF-8, escape sequences and NUL among them."""

import hashlib
import os
import sys

pattern = bytes(range(256)) + b"\x1b[2J\x1b]0;title\x07" + b"\xed\xa0\x80\xc0\x80\xf5" + b"\0" * 16
pattern = (pattern * 4096).replace(b"\n", b"\xff")
left = int(sys.argv[1])
digest = hashlib.sha256()
while left > 0:
    piece = pattern[:left]
    view = memoryview(piece)
    while view:
        view = view[os.write(1, view) :]
    digest.update(piece)
    left -= len(piece)
os.write(2, digest.hexdigest().encode())
