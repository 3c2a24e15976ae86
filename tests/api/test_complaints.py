"""What users of code interpreters complain about, by number, and the tests that hold us to better.

Most of those tests stand beside their subject and carry `@pytest.mark.complaint(number)`; here are the rest.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import Run, create_sandbox, result_text, stream
from service import wait_until

TESTS = Path(__file__).resolve().parents[1]

COMPLAINTS = {
    # Death, hang, silence
    1: "runs time out while CPU or memory are used up, and nothing says why",
    2: "the sandbox is gone in the middle of its work",
    3: "the call hangs although the interpreter is idle: its answer was lost",
    4: "the session hangs on heredocs and unfinished input",
    5: "a run is accepted while the interpreter is dead",
    6: "a command waits for stdin for ever, and then nothing can be stopped",
    7: "what one context holds leaks into others after a while",
    8: "a child in the background holds the call; the timeout kills only the shell",
    9: "await does not work in a cell; tasks do not go on",
    10: "input() hangs; output that was buffered is lost",
    11: "an interrupt does not stop native loops; afterwards others' runs are gone or still run",
    12: "nobody reaps zombies, until fork fails with words about something else",
    # Timeouts, memory, disk, partial output
    13: "a timeout is ignored, or a hidden one wins",
    14: "what was printed before the timeout is thrown away",
    15: "a kill for memory looks like success, or like a lost connection",
    16: "a full disk is an unknown error, or the host's",
    17: "a time limit is reported as a network error, and cannot be set",
    18: "commands have no timeout; state is replayed instead of kept",
    19: "nobody can tell whether the code has run",
    # Output
    20: "one large print kills the host's program",
    21: "output is cut, and the rest is nowhere",
    22: "a picture comes several times over, and is too large",
    23: "Chinese characters in charts are boxes",
    24: "a chart is not shown, or twice",
    # Files
    36: "an upload is held in memory whole, and arrives cut or not at all",
}


def complaints_of(source: str) -> Iterator[int]:
    """The numbers of the markers on the functions of a test file."""
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef) or not function.name.startswith("test_"):
            continue
        for mark in function.decorator_list:
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.complaint":
                yield ast.literal_eval(mark.args[0])


def test_every_complaint_has_a_test() -> None:
    shown = {number for path in TESTS.rglob("test_*.py") for number in complaints_of(path.read_text())}
    assert shown == set(COMPLAINTS)


def test_a_complaint_without_its_test_is_noticed() -> None:
    source = "@pytest.mark.complaint(4)\n@pytest.mark.full\ndef test_a(): ...\n# complaint(5)\n@pytest.mark.complaint(6)\ndef help(): ..."
    assert list(complaints_of(source)) == [4]


@pytest.mark.complaint(1)
def test_the_sandbox_answers_while_its_processors_are_used_up(client: httpx.Client, sandbox: dict[str, Any]) -> None:
    """Files are read meanwhile, and the end says which limit it was."""
    code = "import os\nfor _ in range(8):\n    if os.fork() == 0: break\nwhile True: pass"
    body = {"code": code, "timeout_ms": 4000, "wait": False}
    run = client.post(f"/v1/sandboxes/{sandbox['id']}/runs", json=body).json()
    wait_until(lambda: client.get(f"/v1/runs/{run['id']}").json()["state"] == "running", 30, "the run has begun")
    files = f"/v1/sandboxes/{sandbox['id']}/files"
    for number in range(5):
        content = f"while busy {number}".encode()
        assert client.put(files, params={"path": "note.txt"}, content=content).is_success
        assert client.get(files, params={"path": "note.txt"}).content == content
    assert client.get(f"/v1/runs/{run['id']}").json()["state"] == "running"
    wait_until(lambda: client.get(f"/v1/runs/{run['id']}").json()["state"] == "ended", 30, "the run has ended")
    done = client.get(f"/v1/runs/{run['id']}").json()
    assert (done["end_reason"], done["limit"]) == ("timeout", {"name": "timeout_ms", "value": 4000})


@pytest.mark.complaint(11)
def test_an_interrupt_drops_nobody_elses_run(client: httpx.Client, sandbox: dict[str, Any]) -> None:
    runs = f"/v1/sandboxes/{sandbox['id']}/runs"
    first = client.post(runs, json={"code": "import time; time.sleep(600)", "wait": False}).json()
    second = client.post(runs, json={"code": "print('mine')", "wait": False}).json()
    wait_until(lambda: client.get(f"/v1/runs/{first['id']}").json()["state"] == "running", 30, "the run has begun")
    assert client.post(f"/v1/runs/{first['id']}/interrupt").is_success
    wait_until(lambda: client.get(f"/v1/runs/{second['id']}").json()["state"] == "ended", 30, "the next one has ended")
    assert client.get(f"/v1/runs/{first['id']}").json()["end_reason"] == "interrupted"
    assert client.get(f"/v1/runs/{second['id']}").json()["stdout"]["text"] == "mine\n"


@pytest.mark.complaint(10)
def test_what_was_printed_before_the_interpreter_died_is_there(run: Run) -> None:
    done = run("import os, sys\nsys.stdout.write('without a line end')\nsys.stdout.flush()\nos._exit(3)")
    assert (done["end_reason"], done["stdout"]["text"]) == ("kernel_died", "without a line end")


@pytest.mark.complaint(17)
def test_the_callers_timeout_is_the_one_that_holds(run: Run) -> None:
    begin = time.monotonic()
    done = run("import time\nprint('begun')\ntime.sleep(60)", timeout_ms=1200)
    assert time.monotonic() - begin < 20
    assert (done["end_reason"], done["limit"]["value"], done["stdout"]["text"]) == ("timeout", 1200, "begun\n")
    assert 1200 <= done["metrics"]["wall_ms"] <= 2200


@pytest.mark.complaint(19)
def test_a_request_that_is_sent_again_runs_once(client: httpx.Client, sandbox: dict[str, Any]) -> None:
    """Whoever lost the answer asks again: for a run that goes on, and for one that has ended."""
    runs = f"/v1/sandboxes/{sandbox['id']}/runs"
    body = {"code": "import time\nwith open('ran', 'a') as f: f.write('x')\nprint('once'); time.sleep(1)", "idempotency_key": "a ü"}
    first = client.post(runs, json={**body, "wait": False}).json()
    during, after = client.post(runs, json=body).json(), client.post(runs, json=body).json()
    assert during["id"] == after["id"] == first["id"]
    assert during["stdout"]["text"] == after["stdout"]["text"] == "once\n"
    again = stream(client, runs, body)
    assert [event.type for event in again][0] == "started" and again[-1].data["id"] == first["id"]
    assert client.get(f"/v1/sandboxes/{sandbox['id']}/files", params={"path": "ran"}).content == b"x"
    other = client.post(runs, json={**body, "idempotency_key": "another"}).json()
    assert other["id"] != first["id"]
    assert client.get(f"/v1/sandboxes/{sandbox['id']}/files", params={"path": "ran"}).content == b"xx"


@pytest.mark.complaint(21)
def test_what_was_left_out_of_an_answer_is_where_it_says(client: httpx.Client, sandbox: dict[str, Any]) -> None:
    code = "for i in range(400_000): print(f'{i:06}')"
    done = client.post(f"/v1/sandboxes/{sandbox['id']}/runs", json={"code": code, "inline_bytes": 1024}).json()
    assert done["stdout"]["omitted_bytes"] > 2_700_000
    url = done["stdout"]["url"]
    assert "url" not in done["stderr"]
    whole = client.get(url).content
    assert whole == b"".join(b"%06d\n" % i for i in range(400_000))
    part = client.get(url, headers={"Range": "bytes=1400000-1400006"})
    assert (part.status_code, part.content) == (206, b"200000\n")


@pytest.mark.complaint(2)
def test_a_sandbox_is_there_as_long_as_it_is_used(client: httpx.Client) -> None:
    """Each run counts from its end, and so does one that was only asked for its events."""
    made = create_sandbox(client, idle_timeout_seconds=2)
    runs = f"/v1/sandboxes/{made['id']}/runs"
    for number in range(4):
        time.sleep(1)
        done = client.post(runs, json={"code": f"count = {number}; count"}).json()
        assert result_text(done) == str(number)
    assert client.delete(f"/v1/sandboxes/{made['id']}").status_code == 204


@pytest.mark.complaint(22)
def test_a_picture_is_in_the_answer_once(client: httpx.Client, sandbox: dict[str, Any]) -> None:
    code = "import matplotlib.pyplot as plt\nfigure, axes = plt.subplots()\naxes.plot([1, 2])\nplt.show()\nfigure"
    answer = client.post(f"/v1/sandboxes/{sandbox['id']}/runs", json={"code": code})
    (picture,) = [each["data"]["image/png"] for each in answer.json()["results"] if "image/png" in each["data"]]
    assert len(answer.text) < len(picture) + 20_000


@pytest.mark.complaint(23)
@pytest.mark.parametrize("words", ["中文图表", "日本語のグラフ", "한국어 차트"])
def test_glyphs_of_east_asia_are_drawn(words: str, run: Run) -> None:
    """matplotlib warns about each character that its fonts do not have."""
    code = (
        "import warnings, matplotlib.pyplot as plt\nwarnings.simplefilter('error')\n"
        f"plt.title({words!r}); plt.plot([1, 2], label={words!r}); plt.legend(); plt.savefig('chart.png')\n'drawn'"
    )
    done = run(code)
    assert (done["end_reason"], done["stderr"]["text"]) == ("ok", ""), done.get("error")
    assert done["results"][0]["data"]["text/plain"] == "'drawn'"


@pytest.mark.complaint(7)
def test_twenty_sandboxes_know_nothing_of_each_other(client: httpx.Client) -> None:
    """The same names in each, set one after the other and read when all are set."""
    made = [create_sandbox(client) for _ in range(20)]
    try:
        for number, sandbox in enumerate(made):
            body = {"code": f"import os\nmine = {number}\nos.environ['MINE'] = '{number}'"}
            assert client.post(f"/v1/sandboxes/{sandbox['id']}/runs", json=body).json()["end_reason"] == "ok"
        for number, sandbox in enumerate(made):
            answer = client.post(f"/v1/sandboxes/{sandbox['id']}/runs", json={"code": "mine, os.environ['MINE']"})
            assert result_text(answer.json()) == f"({number}, '{number}')"
    finally:
        for sandbox in made:
            client.delete(f"/v1/sandboxes/{sandbox['id']}")
