"""R04: recursion without an end, in the interpreter itself: `python`, `c` (Python's own C code), or a `node` child."""

import subprocess
import sys

sys.setrecursionlimit(1 << 30)
if sys.argv[1] == "python":

    def deeper() -> None:
        deeper()

    deeper()
if sys.argv[1] == "c":
    nested: list = []
    for _ in range(5_000_000):
        nested = [nested]
    repr(nested)
if sys.argv[1] == "node":
    script = "function deeper() { return deeper() + 1 }; deeper()"
    done = subprocess.run(["node", "-e", script], capture_output=True, text=True)
    print(done.stderr)
    sys.exit(done.returncode)
