"""Entry: `python3 /opt/cloister/kernels/python/cloister_kernel`, with fd 3 a socket to the agent."""

import os
import sys

# User code imports from its working directory first, as in a notebook; this package comes last.
sys.path[0] = ""
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from cloister_kernel.driver import main  # noqa: E402  (needs the path above)

main(agent_fd=3)
