"""The Python interpreter of a sandbox: a driver that runs cells for cloister-agent.

It speaks the driver half of contract/agent-protocol.md on a private socket, and uses IPython's shell for
what IPython is good at: state, magics, rich display. ipykernel and ZeroMQ are not needed.

    channel     messages from and to the agent
    interrupts  SIGINT: when it raises, when it waits, when it is ignored
    streams     stdin, stdout and stderr, and their order
    displays    values and displays as MIME bundles
    figures     matplotlib charts, each exactly once per run
    charts      what a chart shows, as data
    tables      what a DataFrame holds, as data
    errors      exceptions as plain data
    shell       the IPython shell built from these
    driver      the loop: one request, one run
    zygote      the same, with the usual libraries imported, forked into sandboxes
"""
