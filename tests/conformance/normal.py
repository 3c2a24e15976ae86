"""A cell's output in one form, whichever interpreter it came from, and the rules that even out what differs by design.

A cell is a list of parts in the order in which they came:
    {"type": "stdout" | "stderr", "text"}
    {"type": "display" | "update" | "result", "data", "metadata", "display_id"?}
    {"type": "clear", "wait"}
    {"type": "error", "name", "value", "traceback"}
    {"type": "end", "ok"}
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

Part = dict[str, Any]
Cell = list[Part]
Change = Callable[[Cell], Cell]

ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
STREAMS = ("stdout", "stderr")
GROUP = re.compile(
    r'  \+ Exception Group Traceback .*?File "[^"]*\d+\.py", line (?P<line>\d+).*?\n  \| (?P<name>\w*Group): (?P<value>[^\n]*)',
    re.DOTALL,
)


class Rule(NamedTuple):
    """A change that is made to a cell before it is compared: of ours, of the stock kernel's, or of both."""

    why: str
    ours: Change | None
    stock: Change | None


# --- What the rules are made of ---


def each_text(pattern: str, by: str, *types: str) -> Change:
    """Replaces in the texts of parts of these types: streams, text/plain, values of errors."""
    compiled = re.compile(pattern)

    def change(cell: Cell) -> Cell:
        for part in cell:
            if part["type"] not in types:
                continue
            for holder, name in ((part, "text"), (part, "value"), (part.get("data", {}), "text/plain")):
                if name in holder:
                    holder[name] = compiled.sub(by, holder[name])
        return cell

    return change


def joined(cell: Cell) -> Cell:
    """Between two parts that are no streams: all of stdout, then all of stderr."""
    out: Cell = []
    texts = dict.fromkeys(STREAMS, "")
    for part in [*cell, None]:
        if part is not None and part["type"] in STREAMS:
            texts[part["type"]] += part["text"]
            continue
        out += [{"type": stream, "text": text} for stream, text in texts.items() if text]
        texts = dict.fromkeys(STREAMS, "")
        out += [part] if part is not None else []
    return out


def without_own_types(cell: Cell) -> Cell:
    for part in cell:
        for own in ("e2b/data", "e2b/chart"):
            part.get("data", {}).pop(own, None)
            part.get("metadata", {}).pop(own, None)
    return cell


def lines_of_tracebacks(pattern: str) -> Change:
    """Of a traceback only the lines of cells that it goes through."""
    frame = re.compile(pattern)

    def change(cell: Cell) -> Cell:
        for part in cell:
            if part["type"] == "error":
                part["traceback"] = " ".join(frame.findall(part["traceback"]))
        return cell

    return change


def exit_is_no_error(cell: Cell) -> Cell:
    if not any(part["type"] == "error" and part["name"] == "SystemExit" for part in cell):
        return cell
    return [part for part in cell if part["type"] not in ("error", "stderr")]


def usage_error_of_stderr(cell: Cell) -> Cell:
    """`UsageError: …` on stderr as the error that it is."""
    out: Cell = []
    for part in cell:
        if part["type"] == "stderr" and part["text"].startswith("UsageError: "):
            value = part["text"].removeprefix("UsageError: ").strip()
            part = {"type": "error", "name": "UsageError", "value": value, "traceback": ""}
        out.append(part)
    return out


def group_of_stderr(cell: Cell) -> Cell:
    """An exception group that was printed on stderr as the error that it is."""
    out: Cell = []
    for part in cell:
        if part["type"] == "stderr" and (group := GROUP.match(part["text"])):
            part = {"type": "error", "name": group["name"], "value": group["value"], "traceback": f"Cell In[0], line {group['line']}"}
        out.append(part)
    return out


def unfinished_is_wrong(cell: Cell) -> Cell:
    for part in cell:
        if part["type"] == "error" and part["name"] in ("SyntaxError", "_IncompleteInputError"):
            part["name"] = "SyntaxError"
            part["value"] = re.sub(r"incomplete input|'.' was never closed", "unfinished", part["value"])
    return cell


# --- The table ---

RULES = [
    Rule("streams come in pieces of any size; a stock kernel loses their order, which we keep", joined, joined),
    Rule("our data and charts are additions", without_own_types, None),
    Rule("they print an exception group on stderr", None, group_of_stderr),
    Rule("they call an unfinished cell by another name", *[unfinished_is_wrong] * 2),
    Rule("they colour help", None, each_text(ANSI.pattern, "", "display")),
    Rule(
        "our traceback is Python's, theirs has colours and the code around: both go through the same lines",
        lines_of_tracebacks(r'File "<cell \d+>", line (\d+)'),
        lines_of_tracebacks(r"(?:Cell In|File <ipython-input-)\[\d+\], line (\d+)"),
    ),
    Rule(
        "we name a cell <cell N>, they a file that does not exist",
        each_text(r"<cell \d+>", "CELL", "stderr", "error"),
        each_text(r"(?:/tmp/ipykernel_\d+/)?\b\d+\.py", "CELL", "stderr", "error"),
    ),
    Rule("addresses differ", *[each_text(r"0x[0-9a-f]{6,}", "0x", "result", "display")] * 2),
    Rule("times differ", *[each_text(r"[\d.e+-]+ [mnμ]?s\b", "TIME", "stdout")] * 2),
    Rule("they give children a terminal, which ends lines with \\r\\n", None, each_text(r"\r\n", "\n", "stdout")),
    Rule("sys.exit() is no exception here: the exit code says it", None, exit_is_no_error),
    Rule("a wrong magic is an error here, not text on stderr", None, usage_error_of_stderr),
    Rule("a failing %%bash names the program, not its text", *[each_text(r"(?s)^Command .* returned", "Command returned", "error")] * 2),
]


def differences(ours: Cell, stock: Cell) -> list[str]:
    """What the two cells do not have in common, a line each."""
    pairs = zip(map(line_of, ours), map(line_of, stock), strict=False)
    found = [f"ours: {mine}\nstock: {theirs}" for mine, theirs in pairs if mine != theirs]
    found += [f"only ours: {line_of(part)}" for part in ours[len(stock) :]]
    found += [f"only stock: {line_of(part)}" for part in stock[len(ours) :]]
    return found


def line_of(part: Part) -> str:
    return json.dumps(part, sort_keys=True, ensure_ascii=False)


# --- From the two sources ---


def from_ours(events: list[Part], but: Rule | None = None) -> Cell:
    """`but`: without that rule."""
    cell = [part for event in events if (part := ours_part(event)) is not None]
    return normal(cell, [rule.ours for rule in RULES if rule is not but])


def from_stock(messages: list[Part], but: Rule | None = None) -> Cell:
    cell = [stock_part(message["type"], message["content"]) for message in messages]
    return normal(cell, [rule.stock for rule in RULES if rule is not but])


def normal(cell: Cell, changes: list[Change | None]) -> Cell:
    cell = json.loads(json.dumps(cell))
    for change in changes:
        if change is not None:
            cell = change(cell)
    return cell


def ours_part(event: Part) -> Part | None:
    match event["type"]:
        case "started":
            return None
        case "stdout" | "stderr" as stream:
            return {"type": stream, "text": event["text"]}
        case "display" | "result" as kind:
            return shown(kind, event, event.get("display_id"))
        case "display_update":
            return shown("update", event, event.get("display_id"))
        case "clear_output":
            return {"type": "clear", "wait": event["wait"]}
        case "error":
            trace = "\n".join(event["traceback"])
            return {"type": "error", "name": event["name"], "value": event["value"], "traceback": trace}
        case "ended":
            return {"type": "end", "ok": event["end_reason"] == "ok"}
    raise ValueError(f"an event that nobody foresaw: {event}")


def stock_part(kind: str, content: Part) -> Part:
    match kind:
        case "stream":
            return {"type": content["name"], "text": content["text"]}
        case "display_data" | "execute_result" | "update_display_data":
            names = {"display_data": "display", "execute_result": "result", "update_display_data": "update"}
            return shown(names[kind], content, content.get("transient", {}).get("display_id"))
        case "clear_output":
            return {"type": "clear", "wait": content["wait"]}
        case "error":
            trace = ANSI.sub("", "\n".join(content["traceback"]))
            return {"type": "error", "name": content["ename"], "value": content["evalue"], "traceback": trace}
        case "reply":
            return {"type": "end", "ok": content["status"] == "ok"}
    raise ValueError(f"a message that nobody foresaw: {kind}")


def shown(kind: str, content: Part, display_id: str | None) -> Part:
    part = {"type": kind, "data": content["data"], "metadata": content.get("metadata", {})}
    return part if display_id is None else {**part, "display_id": display_id}
