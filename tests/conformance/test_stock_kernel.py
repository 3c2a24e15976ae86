"""Our Python context beside a stock ipykernel: the same cells, the same interpreter and packages, the same output.

Both run in a sandbox of ours. Where the two differ by design a rule of `normal.RULES` says how and why; whatever is
left over after the rules is a difference that somebody who knows Jupyter would see.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cells import CELLS
from conftest import create_sandbox, stream
from normal import RULES, differences, from_ours, from_stock
from wheels import wheels

HERE = Path(__file__).resolve().parent
Messages = list[dict[str, Any]]

SET_UP = (
    "mkdir /tmp/stock && for wheel in *.whl; do python3 -m zipfile -e $wheel /tmp/stock || exit; done && rm *.whl\n"
    "mv cells.json stock_kernel.py /tmp && PYTHONPATH=/tmp/stock python3 /tmp/stock_kernel.py /tmp/cells.json >/tmp/answers.json"
)


@pytest.fixture(scope="module")
def stock(client: httpx.Client) -> Iterator[dict[str, Messages]]:
    """What a stock ipykernel answers: messages per cell."""
    sandbox = create_sandbox(client)
    files = f"/v1/sandboxes/{sandbox['id']}/files"
    contents = {path.name: path.read_bytes() for path in [*wheels(), HERE / "stock_kernel.py"]}
    contents["cells.json"] = json.dumps(list(CELLS.values())).encode()
    for name, content in contents.items():
        answer = client.put(files, params={"path": name}, content=content)
        assert answer.is_success, answer.text
    body = {"language": "bash", "code": SET_UP, "timeout_ms": 300_000}
    done = client.post(f"/v1/sandboxes/{sandbox['id']}/runs", json=body).json()
    assert (done["end_reason"], done["exit_code"]) == ("ok", 0), done["stderr"]["text"]
    answers = client.get(files, params={"path": "/tmp/answers.json"}).json()
    yield dict(zip(CELLS, answers, strict=True))
    assert client.delete(f"/v1/sandboxes/{sandbox['id']}").status_code == 204


@pytest.fixture(scope="module")
def ours(client: httpx.Client) -> Iterator[dict[str, Messages]]:
    """What we answer: events per cell."""
    sandbox = create_sandbox(client)
    path = f"/v1/sandboxes/{sandbox['id']}/runs"
    yield {
        name: [{**event.data, "type": event.type} for event in stream(client, path, {"code": code})]
        for name, code in CELLS.items()
    }
    assert client.delete(f"/v1/sandboxes/{sandbox['id']}").status_code == 204


def test_there_are_enough_cells() -> None:
    assert len(CELLS) >= 60


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_does_the_same(name: str, ours: dict[str, Messages], stock: dict[str, Messages]) -> None:
    left = differences(from_ours(ours[name]), from_stock(stock[name]))
    assert left == [], "\n".join(left)


def test_every_rule_is_needed(ours: dict[str, Messages], stock: dict[str, Messages]) -> None:
    """Without it some cell would differ: a rule that hides nothing must go."""
    idle = [
        rule.why
        for rule in RULES
        if not any(differences(from_ours(ours[name], but=rule), from_stock(stock[name], but=rule)) for name in CELLS)
    ]
    assert idle == []


# --- The comparison itself: it must see a difference that we plant ---


def first(cell: Messages, kind: str) -> dict[str, Any]:
    return next(part for part in cell if part["type"] == kind)


def lose_output(cell: Messages) -> None:
    cell.remove(first(cell, "stdout"))


def add_output(cell: Messages) -> None:
    cell.insert(0, {"type": "stdout", "text": "more\n"})


def change_text(cell: Messages) -> None:
    first(cell, "stdout")["text"] += " "


def swap_streams(cell: Messages) -> None:
    first(cell, "stdout")["type"] = "stderr"


def change_order(cell: Messages) -> None:
    error = first(cell, "error")
    cell.remove(error)
    cell.insert(0, error)


def change_result(cell: Messages) -> None:
    first(cell, "result")["data"]["text/plain"] += "0"


def show_instead_of_result(cell: Messages) -> None:
    first(cell, "result")["type"] = "display"


def lose_a_type(cell: Messages) -> None:
    del first(cell, "result")["data"]["text/html"]


def lose_metadata(cell: Messages) -> None:
    first(cell, "result")["metadata"] = {}


def change_the_error(cell: Messages) -> None:
    first(cell, "error")["name"] = "ArithmeticError"


def change_the_message(cell: Messages) -> None:
    first(cell, "error")["value"] += "!"


def change_the_line(cell: Messages) -> None:
    error = first(cell, "error")
    error["traceback"] = [line.replace("line 1", "line 2") for line in error["traceback"]]


def end_well(cell: Messages) -> None:
    first(cell, "ended")["end_reason"] = "ok"


def change_the_id(cell: Messages) -> None:
    first(cell, "display")["display_id"] = "another"


def show_twice(cell: Messages) -> None:
    cell.insert(0, copy.deepcopy(first(cell, "display")))


def change_the_kind_of_picture(cell: Messages) -> None:
    first(cell, "display")["data"]["image/png"] = "R0lGODlh"


PLANTED: list[tuple[str, Callable[[Messages], None]]] = [
    ("print", lose_output),
    ("print", add_output),
    ("print", change_text),
    ("print", swap_streams),
    ("output and an exception", change_order),
    ("a number", change_result),
    ("a number", show_instead_of_result),
    ("a frame", lose_a_type),
    ("a mime bundle", lose_metadata),
    ("an exception", change_the_error),
    ("an exception", change_the_message),
    ("an exception", change_the_line),
    ("an exception", end_well),
    ("a display with an id", change_the_id),
    ("markdown", show_twice),
    ("a chart", change_the_kind_of_picture),
]


@pytest.mark.parametrize(("name", "change"), PLANTED, ids=[change.__name__ for _, change in PLANTED])
def test_a_planted_difference_is_found(
    name: str, change: Callable[[Messages], None], ours: dict[str, Messages], stock: dict[str, Messages]
) -> None:
    altered = copy.deepcopy(ours[name])
    change(altered)
    assert altered != ours[name]
    assert differences(from_ours(altered), from_stock(stock[name])) != []
