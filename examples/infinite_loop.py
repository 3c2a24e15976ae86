"""It never ends by itself; `--timeout` ends it, and what it had printed is kept. The exit code is 124.

    ./dev run --timeout 2 examples/infinite_loop.py
"""

print("counting…")
number = 0
while True:
    number += 1
