"""A client that costs next to nothing: one kept connection, bytes out, bytes in. What it takes itself would else be
counted as the service's."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any


class Wire:
    def __init__(self, url: str, key: str) -> None:
        host, port = url.removeprefix("http://").split(":")
        self._socket = socket.create_connection((host, int(port)), timeout=120)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = f"Host: {host}\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"

    def close(self) -> None:
        self._socket.close()

    def post(self, path: str, body: dict[str, Any], accept: str = "application/json") -> bytes:
        """The bytes of a request."""
        text = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\n{self._head}Accept: {accept}\r\nContent-Length: {len(text)}\r\n\r\n"
        return head.encode() + text

    def ask(self, request: bytes) -> bytes:
        """The whole body of the answer, which has a Content-Length."""
        self._socket.sendall(request)
        got = self._socket.recv(65536)
        while b"\r\n\r\n" not in got:
            got += self._socket.recv(65536)
        head, _, body = got.partition(b"\r\n\r\n")
        size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        while len(body) < size:
            body += self._socket.recv(65536)
        return body

    def pieces(self, request: bytes) -> Iterator[memoryview]:
        """What comes of a streamed answer, as it comes, until its last chunk."""
        self._socket.sendall(request)
        buffer = bytearray(1 << 20)
        view = memoryview(buffer)
        tail = b""
        while not tail.endswith(b"0\r\n\r\n"):
            got = self._socket.recv_into(view)
            if got == 0:
                raise EOFError("the service closed the connection")
            tail = (tail + bytes(view[max(got - 5, 0) : got]))[-5:]
            yield view[:got]
