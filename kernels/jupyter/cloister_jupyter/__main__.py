"""Entry: `python3 /opt/cloister/kernels/jupyter/cloister_jupyter KERNELSPEC`, with fd 3 a socket to the agent."""

import os
import sys

_package = os.path.dirname(os.path.abspath(__file__))
_kernels = os.path.dirname(os.path.dirname(_package))
# Without the package's own folder, whose `kernel.py` is no top-level module. What the user installed comes last.
sys.path[:] = [os.path.dirname(_package), os.path.join(_kernels, "python"), *sys.path[1:]]

try:
    import zmq as _  # noqa: F401
except ImportError:
    sys.exit("kernels of Jupyter need ZeroMQ here: use the template `polyglot`, or run `pip install pyzmq`")

from cloister_jupyter.driver import main  # noqa: E402

sys.exit(main(sys.argv[1], agent_fd=3))
