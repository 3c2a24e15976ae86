"""Reads server-sent events as the API sends them: `id`, `event` and one line of JSON `data` each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple


class Event(NamedTuple):
    id: int
    type: str
    data: dict[str, Any]


def read_events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """Events of a stream of bytes; heartbeat comments are skipped, anything else unknown is an error."""
    fields: dict[str, str] = {}
    for line in _lines(chunks):
        if not line:
            if fields:
                yield Event(int(fields["id"]), fields["event"], json.loads(fields["data"]))
            fields = {}
        elif not line.startswith(":"):
            name, colon, value = line.partition(":")
            if not colon or name not in ("id", "event", "data") or name in fields:
                raise ValueError(f"not a line of our events: {line!r}")
            fields[name] = value.removeprefix(" ")
    if fields:
        raise ValueError(f"the stream ends inside an event: {fields}")


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Lines as soon as they are whole, without their ends."""
    begun: list[bytes] = []
    for chunk in chunks:
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            yield b"".join([*begun, line]).decode()
            begun.clear()
        begun.append(rest)
    if any(begun):
        yield b"".join(begun).decode()


def text_of(events: Iterable[Event], stream: str) -> str:
    """All that a run wrote to `stdout` or `stderr`."""
    return "".join(event.data["text"] for event in events if event.type == stream)
