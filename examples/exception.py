"""An error in the program: the traceback goes to stderr, the exit code is 1.

    ./dev run examples/exception.py
"""


def share(part: float, whole: float) -> float:
    return part / whole


print("half:", share(1, 2))
print("nothing:", share(1, 0))
