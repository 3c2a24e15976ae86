"""Messages from and to the agent: 4 bytes of length, little endian, then JSON `{"msg_type", "content"}`."""

from __future__ import annotations

import fcntl
import json
import math
import os
import resource
import socket
import struct
import threading
from dataclasses import dataclass
from typing import Any

from .interrupts import Interrupts

_LENGTH = struct.Struct("<I")
_READ = 256 * 1024
_DEPTH_MAX = 20  # the agent takes a few levels more
_FDS_MAX = 4 * struct.calcsize("i")
_NO_REQUESTS = frozenset({"stream_sync_reply", "interrupt_request"})

# limits::kDisplayMax of the agent, less the words around the data. A larger one is replaced by a note.
MESSAGE_MAX = 8 * 1024 * 1024 - 4096


@dataclass
class Message:
    msg_type: str
    content: dict[str, Any]
    fds: list[int]


def private_fd(fd: int) -> int:
    """A duplicate of `fd` with a high number, out of the way of code that closes or reuses low ones."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = max(16, min(soft, 1024) - 16)
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, lowest)


class Channel:
    """One socket, several threads: a message is sent whole, and an interrupt waits until it is."""

    def __init__(self, fd: int, interrupts: Interrupts) -> None:
        self._socket = socket.socket(fileno=private_fd(fd))
        os.close(fd)
        self._interrupts = interrupts
        self._lock = threading.Lock()
        self._buffer = bytearray()
        self._fds: list[int] = []
        self._held = b""  # messages that wait for the next one
        self._awaited = 0  # sync replies that have not come yet
        self._connected = True

    def fileno(self) -> int:
        return self._socket.fileno()

    def leave(self) -> None:
        """In a forked child: the socket belongs to the parent."""
        self._connected = False
        self._held = b""
        self._socket.close()

    @property
    def interrupts(self) -> Interrupts:
        return self._interrupts

    @property
    def connected(self) -> bool:
        return self._connected

    def send(self, msg_type: str, content: dict[str, Any], *, soon: bool = False) -> None:
        """`soon`: it may wait for the next message, so that the agent wakes up once for both."""
        payload = encode({"msg_type": msg_type, "content": content})
        if len(payload) > MESSAGE_MAX:
            payload = encode({"msg_type": msg_type, "content": _too_large(content, len(payload))})
        with self._interrupts, self._lock:
            self._write(payload, soon)

    def sync(self) -> None:
        """Returns when the agent has read everything that was written before.

        Only the cell itself waits: what other threads write has no order to keep, and between runs the
        main thread reads this socket.
        """
        if not (self._connected and self._interrupts.in_cell()):
            return
        with self._interrupts, self._lock:
            self._awaited += 1
            self._write(encode({"msg_type": "stream_sync", "content": {}}))
            while self._awaited:
                self._take()

    def receive(self) -> Message | None:
        """The next request; None when the agent is gone."""
        while (message := self._take()) is not None:
            if message.msg_type not in _NO_REQUESTS:
                return message
        return None

    def take_interrupt(self) -> bool:
        """Whether the request that was received last has been interrupted since."""
        if not self._buffer and not _is_readable(self._socket):
            return False
        size = self._next_size()
        if size is None or self._body(size)["msg_type"] != "interrupt_request":
            return False
        del self._buffer[:size]
        return True

    def _take(self) -> Message | None:
        size = self._next_size()
        if size is None:
            return None
        body = self._body(size)
        del self._buffer[:size]
        fds, self._fds = self._fds, []
        if body["msg_type"] == "stream_sync_reply":
            self._awaited -= 1
        return Message(body["msg_type"], body["content"], fds)

    def _next_size(self) -> int | None:
        """Waits until the next message is in the buffer, whole, and says how long it is; None when the agent is gone."""
        size = _LENGTH.size
        if not self._fill(size):
            return None
        size += _LENGTH.unpack_from(self._buffer)[0]
        return size if self._fill(size) else None

    def _body(self, size: int) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(memoryview(self._buffer)[_LENGTH.size : size].tobytes())
        return body

    def _fill(self, size: int) -> bool:
        while len(self._buffer) < size:
            data, ancillary, _, _ = self._socket.recvmsg(_READ, socket.CMSG_SPACE(_FDS_MAX))
            for level, kind, blob in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    self._fds += struct.unpack(f"{len(blob) // 4}i", blob)
            if not data:
                if self._awaited:
                    raise ConnectionResetError("the agent is gone")
                return False
            self._buffer += data
        return True

    def _write(self, payload: bytes, soon: bool = False) -> None:
        if not self._connected:
            return
        self._held += _LENGTH.pack(len(payload)) + payload
        if not soon:
            bytes_, self._held = self._held, b""
            self._socket.sendall(bytes_)


def _is_readable(door: socket.socket) -> bool:
    try:
        return bool(door.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except BlockingIOError:
        return False


def encode(value: Any) -> bytes:
    """Strict JSON in UTF-8: what JSON cannot say (NaN, lone surrogates, foreign objects) becomes null, `?`, text."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str)
    except (ValueError, TypeError):
        text = json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def plain(value: Any, depth: int = 0) -> Any:
    """A copy of `value` that every JSON reader takes: not too deep, finite numbers, known types."""
    if depth > _DEPTH_MAX:
        return "…"
    if isinstance(value, dict):
        return {str(key): plain(entry, depth + 1) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry, depth + 1) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int):
        return value if abs(value) < 2**63 else float(value) if abs(value) < 1e300 else str(value)
    return value if value is None or isinstance(value, str) else str(value)


def _too_large(content: dict[str, Any], size: int) -> dict[str, Any]:
    note = (
        f"[a display of {size:,} bytes is left out: at most {MESSAGE_MAX:,} are shown. "
        "Save it to a file instead, or show less of it.]"
    )
    return {**content, "data": {"text/plain": note}, "metadata": {}}
