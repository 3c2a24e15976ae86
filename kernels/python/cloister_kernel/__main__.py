"""Entry: `python3 /opt/cloister/kernels/python/cloister_kernel`, with fd 3 a socket to the agent, or one for orders."""

import os
import site
import socket
import sys

# We import from the image only: a `json.py` in the working directory or an IPython that the user installed
# must not keep the interpreter from starting.
_ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_installed = sys.path[1:]
sys.path[:] = [_ours, *(path for path in _installed if not path.startswith(site.getuserbase()))]

from cloister_kernel.driver import main  # noqa: E402

# User code imports from its working directory first, as in a notebook, and from what was installed.
sys.path[:] = ["", *_installed, _ours]

with socket.socket(fileno=os.dup(3)) as _door:
    _takes_orders = _door.type == socket.SOCK_SEQPACKET
if _takes_orders:
    from cloister_kernel.zygote import serve

    serve()
else:
    main(agent_fd=3)
