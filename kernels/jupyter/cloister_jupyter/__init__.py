"""The bridge to Jupyter kernels: a driver that lets any kernel that a template has run code for cloister-agent.

It speaks the driver half of contract/agent-protocol.md on one side, and the Jupyter messaging protocol over
ZeroMQ, on loopback and signed, on the other.

    kernelspec  finds what is installed, as Jupyter does
    session     Jupyter messages as frames: signed, checked
    kernel      the kernel's process and its sockets
    translate   what a kernel says during a run, in the words of the agent protocol
    languages   what a run asks for that the protocol has no words for: directory, environment, arguments
    streams     what is written to stdout and stderr, in its order among the messages
    driver      the loop: one request, one run
"""
