"""R12: a picture of 300 MB, very many displays, a giant repr, and a traceback that is one, too."""

import sys

from IPython.display import display


class Picture:
    def _repr_png_(self):
        return bytes(300_000_000)


class Giant:
    def __repr__(self):
        return "g" * 100_000_000


what = sys.argv[1]
if what == "picture":
    display(Picture())
elif what == "many":
    for i in range(int(sys.argv[2])):
        display(i)
elif what == "repr":
    display(Giant())
elif what == "traceback":
    raise ValueError("t" * 100_000_000)
print("went on")
