"""Reads lines of JSON as the API sends them: `{"id", "event", "data"}`, and heartbeats between them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from sse import Event

HEARTBEAT = {"event": "heartbeat"}


def event_of(text: str | bytes) -> Event:
    """One event: a line of a stream, or a message of a WebSocket."""
    fields = json.loads(text)
    if set(fields) != {"id", "event", "data"}:
        raise ValueError(f"not an event of ours: {text!r}")
    return Event(fields["id"], fields["event"], fields["data"])


def read_lines(lines: Iterable[str]) -> Iterator[Event]:
    for line in lines:
        if json.loads(line) != HEARTBEAT:
            yield event_of(line)
