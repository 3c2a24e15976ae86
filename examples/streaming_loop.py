"""A long loop: each line arrives when it is printed, not at the end.

    ./dev run examples/streaming_loop.py 5
"""

import sys
import time

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 5
for step in range(1, steps + 1):
    print(f"step {step} of {steps}")
    time.sleep(0.3)
print("done")
