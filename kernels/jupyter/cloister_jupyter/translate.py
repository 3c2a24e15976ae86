"""What a kernel says during a run, in the words of the agent protocol.

A kernel is code of others: what it sends is cut to the types and sizes that the agent expects.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from cloister_kernel.channel import plain

_VALUE_MAX = 64 * 1024
_LINE_MAX = 4 * 1024
_LINES_MAX = 400
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


@dataclass
class Output:
    """Text for stdout or stderr."""

    fd: int
    text: str


@dataclass
class Told:
    """A message for the agent."""

    msg_type: str
    content: dict[str, Any]


def translated(msg_type: str, content: dict[str, Any]) -> Output | Told | None:
    """One message of the kernel's iopub socket; None for what a run does not show."""
    match msg_type:
        case "stream":
            return Output(2 if content.get("name") == "stderr" else 1, _text(content.get("text")))
        case "display_data" | "update_display_data":
            return Told(msg_type, {**_bundle(content), "transient": _transient(content)})
        case "execute_result":
            return Told(msg_type, {**_bundle(content), "execution_count": _count(content)})
        case "clear_output":
            return Told(msg_type, {"wait": content.get("wait") is True})
        case "error":
            return Told(msg_type, error(content))
    return None


def error(content: dict[str, Any]) -> dict[str, Any]:
    """The content of an `error` message; a reply that tells of an error has the same fields."""
    trace = content.get("traceback")
    lines = [line for entry in trace if isinstance(entry, str) for line in entry.split("\n")] if isinstance(trace, list) else []
    if len(lines) > _LINES_MAX:
        half = _LINES_MAX // 2
        lines = [*lines[:half], f"… {len(lines) - 2 * half} lines are left out …", *lines[-half:]]
    return {
        "ename": _cut(_text(content.get("ename")) or "Error", _LINE_MAX),
        "evalue": _cut(_COLOURS.sub("", _text(content.get("evalue"))), _VALUE_MAX),
        "traceback": [_cut(_COLOURS.sub("", line), _LINE_MAX) for line in lines],
    }


def pages(reply: dict[str, Any]) -> list[Told]:
    """What a reply asks a notebook to show in its pager, as displays."""
    shown = [payload for payload in _payloads(reply) if payload.get("source") == "page"]
    return [Told("display_data", {**_bundle(payload), "transient": {}}) for payload in shown]


def asks_exit(reply: dict[str, Any]) -> bool:
    """The code called `exit` or `quit`: such a kernel waits to be shut down."""
    return any(p.get("source") == "ask_exit" and not p.get("keepkernel") for p in _payloads(reply))


def execution_count(reply: dict[str, Any]) -> int:
    return _count(reply)


def _payloads(reply: dict[str, Any]) -> list[dict[str, Any]]:
    payloads = reply.get("payload")
    return [p for p in payloads if isinstance(p, dict)] if isinstance(payloads, list) else []


def _bundle(content: dict[str, Any]) -> dict[str, Any]:
    data, metadata = content.get("data"), content.get("metadata")
    return {
        "data": {mime: _value(mime, value) for mime, value in data.items()} if isinstance(data, dict) else {},
        "metadata": plain(metadata) if isinstance(metadata, dict) else {},
    }


def _value(mime: str, value: Any) -> Any:
    """Text and base64 are texts, which some kernels send as lists of lines; only JSON types have structure."""
    if mime == "application/json" or mime.endswith("+json"):
        return plain(value)
    text = "".join(part for part in value if isinstance(part, str)) if isinstance(value, list) else str(value)
    return "".join(text.split()) if _is_binary(mime) else text


def _is_binary(mime: str) -> bool:
    """Sent as base64, in which some kernels break lines."""
    return (mime.startswith("image/") and mime != "image/svg+xml") or mime == "application/pdf"


def _transient(content: dict[str, Any]) -> dict[str, Any]:
    transient = content.get("transient")
    display_id = transient.get("display_id") if isinstance(transient, dict) else None
    return {"display_id": display_id} if isinstance(display_id, str) else {}


def _count(content: dict[str, Any]) -> int:
    count = content.get("execution_count")
    return count if isinstance(count, int) and 0 <= count < 2**53 else 0


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else f"{text[:size]}… ({len(text) - size:,} more characters)"
