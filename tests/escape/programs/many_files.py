"""R08: empty files with long names, and a chain of directories, until it is refused."""

import os
import sys
import time

deadline = time.monotonic() + float(sys.argv[1])
os.makedirs("many", exist_ok=True)
os.chdir("many")
count = 0
while time.monotonic() < deadline:
    if count % 1000 == 0:
        os.mkdir(f"d{count}")
        os.chdir(f"d{count}")
    os.close(os.open(f"{count:0200d}", os.O_CREAT | os.O_WRONLY))
    count += 1
    if count % 10000 == 0:
        print(count, "files", flush=True)
