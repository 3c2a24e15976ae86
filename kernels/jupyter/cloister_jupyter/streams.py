"""What the bridge writes for its kernel to stdout and stderr, in its order among the messages.

The kernel's own process has the same pipes: what it and its children write there comes along, but nothing tells
where it stood among what came by message.
"""

from __future__ import annotations

import os
from typing import Any

from cloister_kernel.channel import Channel

_MESSAGE = 0


class OrderedOutput:
    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._last: int | None = None  # a descriptor or _MESSAGE; None: no order to keep yet

    def begin(self) -> None:
        self._last = None

    def write(self, fd: int, text: str) -> None:
        """Before another stream is written than last, the agent must have read that one."""
        if self._last not in (None, fd):
            self._channel.sync()
        self._last = fd
        data = memoryview(text.encode("utf-8", "replace"))
        while data:
            data = data[os.write(fd, data) :]

    def send(self, msg_type: str, content: dict[str, Any]) -> None:
        """The agent reads both pipes dry before it looks at a message."""
        self._channel.send(msg_type, content)
        self._last = _MESSAGE
