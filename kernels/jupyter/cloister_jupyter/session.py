"""Jupyter messages as the frames that travel over ZeroMQ: signed on the way out, checked on the way in."""

from __future__ import annotations

import hmac
import json
import uuid
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

_DELIMITER = b"<IDS|MSG>"
_VERSION = "5.3"
_PARTS = 4  # header, parent header, metadata, content


@dataclass
class JupyterMessage:
    msg_type: str
    msg_id: str
    parent_id: str
    content: dict[str, Any]
    header: dict[str, Any]


class Session:
    """One conversation with a kernel, under the key that its connection file holds."""

    def __init__(self, key: str) -> None:
        self._key = key.encode()
        self._id = uuid.uuid4().hex

    @property
    def identity(self) -> bytes:
        """The name of its sockets."""
        return self._id.encode()

    def frames(
        self, msg_type: str, content: dict[str, Any], parent: dict[str, Any] | None = None
    ) -> tuple[str, list[bytes]]:
        """A new message: its id, and what is sent."""
        header = {
            "msg_id": uuid.uuid4().hex,
            "session": self._id,
            "username": "user",
            "date": datetime.now(timezone.utc).isoformat(),
            "msg_type": msg_type,
            "version": _VERSION,
        }
        parts = [json.dumps(part).encode() for part in (header, parent or {}, {}, content)]
        return header["msg_id"], [_DELIMITER, self._signature(parts), *parts]

    def message(self, frames: list[bytes]) -> JupyterMessage | None:
        """What was received; None for what is not a message of this conversation."""
        if _DELIMITER not in frames:
            return None
        body = frames[frames.index(_DELIMITER) + 1 :]
        if len(body) < 1 + _PARTS or not hmac.compare_digest(body[0], self._signature(body[1 : 1 + _PARTS])):
            return None
        try:
            header, parent, _, content = (json.loads(part) for part in body[1 : 1 + _PARTS])
        except (ValueError, RecursionError):
            return None
        if not all(isinstance(part, dict) for part in (header, parent, content)):
            return None
        texts = (header.get("msg_type"), header.get("msg_id"), parent.get("msg_id", ""))
        if not all(isinstance(text, str) for text in texts):
            return None
        return JupyterMessage(*texts, content=content, header=header)

    def _signature(self, parts: list[bytes]) -> bytes:
        signature = hmac.new(self._key, digestmod="sha256")
        for part in parts:
            signature.update(part)
        return signature.hexdigest().encode()
