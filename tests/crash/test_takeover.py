"""C01: kill -9 of cloisterd under running sandboxes: its successor goes on with all of them, and nothing is lost.

The tests have a service of their own: one that crashes too often within a minute is given up by its supervisor.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from conftest import create_sandbox, new_client
from service import Build, Service, processes_in_group, running, wait_until
from sse import Event, read_events

SERVING_AGAIN_SECONDS = 5

COUNTING = """
import sys, time
for i in range({lines}):
    print(i, flush=True)
    time.sleep({pause})
"""

UNTIL_TOLD = """
import itertools, os, time
for i in itertools.count():
    print(i, flush=True)
    if os.path.exists("stop"):
        break
    time.sleep(0.1)
"""


@pytest.fixture
def service(build: Build) -> Iterator[Service]:
    """For each test its own: a program that is killed too often within a minute is given up."""
    with running(Service(build)) as service:
        yield service


@pytest.fixture
def http(service: Service) -> Iterator[httpx.Client]:
    with new_client(service, Authorization=f"Bearer {service.key}") as client:
        yield client


def begin(client: httpx.Client, sandbox_id: str, code: str, **more: Any) -> str:
    body = {"code": code, "wait": False, **more}
    return client.post(f"/v1/sandboxes/{sandbox_id}/runs", json=body).json()["id"]


def record(client: httpx.Client, run_id: str) -> dict[str, Any]:
    return client.get(f"/v1/runs/{run_id}").json()


def end_of(client: httpx.Client, run_id: str, seconds: float = 120) -> dict[str, Any]:
    wait_until(lambda: record(client, run_id)["state"] == "ended", seconds, f"run {run_id} ends")
    return record(client, run_id)


def wait_for_output(client: httpx.Client, run_id: str, text: str) -> None:
    wait_until(lambda: text in record(client, run_id)["stdout"]["text"], 60, f"{text!r} was printed")


def counted(lines: int) -> str:
    return "".join(f"{i}\n" for i in range(lines))


def events_of(client: httpx.Client, run_id: str, after: int = 0) -> list[Event]:
    with client.stream("GET", f"/v1/runs/{run_id}/events", params={"after": after}) as answer:
        return list(read_events(answer.iter_bytes()))


def check_events(events: list[Event], first: int, text: str) -> None:
    """Numbers without gap or repetition, one end, and all the text."""
    assert [event.id for event in events] == list(range(first, first + len(events)))
    assert [event.type for event in events].count("ended") == 1
    assert events[-1].type == "ended"
    assert "".join(event.data["text"] for event in events if event.type == "stdout") == text


@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.full)])
def test_killed_with_many_sandboxes(count: int, service: Service, http: httpx.Client) -> None:
    sandboxes, runs = [], []
    for _ in range(count):
        sandboxes.append(create_sandbox(http, memory_mb=128)["id"])
        runs.append(begin(http, sandboxes[-1], UNTIL_TOLD, timeout_ms=3_600_000))
        wait_for_output(http, runs[-1], "0\n")

    seconds = service.kill("cloisterd")

    print(f"\n{count} sandboxes: serving again after {seconds:.2f} s")
    assert seconds < SERVING_AGAIN_SECONDS
    listed = {one["id"] for one in http.get("/v1/sandboxes").json()["sandboxes"]}
    assert set(sandboxes) <= listed
    for sandbox_id, run_id in zip(sandboxes, runs, strict=True):
        before = record(http, run_id)["stdout"]["bytes"]
        wait_until(lambda one=run_id, had=before: record(http, one)["stdout"]["bytes"] > had, 30, "it goes on")
        assert http.put(f"/v1/sandboxes/{sandbox_id}/files", params={"path": "stop"}, content=b"").status_code < 300
        ended = end_of(http, run_id)
        text = ended["stdout"]["text"]
        assert (ended["end_reason"], text) == ("ok", counted(text.count("\n")))
        check_events(events_of(http, run_id), 1, text)
    for sandbox_id in sandboxes:
        assert http.delete(f"/v1/sandboxes/{sandbox_id}").status_code == 204
        assert not processes_in_group(sandbox_id)


class Reader(threading.Thread):
    """Reads a run's events until its server dies."""

    def __init__(self, client: httpx.Client, run_id: str) -> None:
        super().__init__()
        self.events: list[Event] = []
        self._client, self._run_id = client, run_id
        self.start()

    def run(self) -> None:
        try:
            with self._client.stream("GET", f"/v1/runs/{self._run_id}/events") as answer:
                for event in read_events(answer.iter_bytes()):
                    self.events.append(event)
        except (httpx.TransportError, ValueError):
            return


def test_everything_that_was_under_way_goes_on(service: Service, http: httpx.Client) -> None:
    box = create_sandbox(http, env={"GIVEN": "kept"}, metadata={"task": "demo"})
    path = f"/v1/sandboxes/{box['id']}/runs"
    http.post(path, json={"code": "x = 41"})
    counting = begin(http, box["id"], COUNTING.format(lines=300, pause=0.02))
    waiting = [begin(http, box["id"], code) for code in ("x += 1; import os; print(x, os.environ['GIVEN'])", "print(x)")]
    reader = Reader(http, counting)

    asking = create_sandbox(http)
    answer = begin(http, asking["id"], "print(input()); print(input())", stdin_open=True)
    wait_until(lambda: record(http, answer)["state"] == "running", 30, "it runs")
    assert http.post(f"/v1/runs/{answer}/stdin", content=b"one\n").status_code == 204
    wait_for_output(http, answer, "one\n")

    short = create_sandbox(http)
    ended_in_gap = begin(http, short["id"], "print('begun', flush=True); import time; time.sleep(0.3); print('late')")
    one_call = http.post("/v1/runs", json={"code": COUNTING.format(lines=100, pause=0.03), "wait": False}).json()
    for run_id, text in ((counting, "20\n"), (ended_in_gap, "begun"), (one_call["id"], "0\n")):
        wait_for_output(http, run_id, text)

    seconds = service.kill("cloisterd")
    assert seconds < SERVING_AGAIN_SECONDS
    reader.join(30)

    # A reader that comes back goes on behind what it had.
    had = reader.events
    rest = events_of(http, counting, had[-1].id)
    assert 20 < len(had) < 302
    check_events(had + rest, 1, counted(300))
    ended = end_of(http, counting)
    assert ended["end_reason"] == "ok"
    assert ended["last_event"] == rest[-1].id
    assert ended["metrics"]["wall_ms"] >= 6000

    # What had waited was run in its order, in the same interpreter.
    assert [end_of(http, run_id)["stdout"]["text"] for run_id in waiting] == ["42 kept\n", "42\n"]
    again = http.get(f"/v1/sandboxes/{box['id']}").json()
    assert again == box

    # stdin goes on.
    assert http.post(f"/v1/runs/{answer}/stdin", content=b"two\n").status_code == 204
    assert end_of(http, answer)["stdout"]["text"] == "one\ntwo\n"

    # A run that ended while nobody was there has its own end, and the time of it.
    late = end_of(http, ended_in_gap)
    assert (late["end_reason"], late["stdout"]["text"]) == ("ok", "begun\nlate\n")
    assert late["metrics"]["wall_ms"] < 2000

    # The sandbox of a one-call run goes with it.
    assert end_of(http, one_call["id"])["stdout"]["text"] == counted(100)
    gone = one_call["sandbox_id"]
    wait_until(lambda: not processes_in_group(gone), 20, "the sandbox of the one-call run is gone")

    for sandbox in (box, asking, short):
        assert http.post(f"/v1/sandboxes/{sandbox['id']}/runs", json={"code": "1"}).json()["end_reason"] == "ok"
        assert http.delete(f"/v1/sandboxes/{sandbox['id']}").status_code == 204


def test_much_output_in_the_gap(service: Service, http: httpx.Client) -> None:
    """More than the agent keeps in memory, and killed again while it is being taken over."""
    box = create_sandbox(http)
    lines = 400_000
    code = f"import time\nprint('begun', flush=True)\ntime.sleep(0.5)\nfor i in range({lines}): print(i)"
    run_id = begin(http, box["id"], code)
    wait_for_output(http, run_id, "begun")
    service.kill("cloisterd")
    service.kill("cloisterd")
    ended = end_of(http, run_id)
    text = "begun\n" + counted(lines)
    assert (ended["end_reason"], ended["stdout"]["bytes"]) == ("ok", len(text))
    assert ended["stdout"]["text"].endswith(f"{lines - 1}\n")
    assert ended["stdout"]["omitted_bytes"] == len(text) - 1024 * 1024 + kept_note(ended)
    assert http.delete(f"/v1/sandboxes/{box['id']}").status_code == 204


def output_of(client: httpx.Client, run_id: str, stream: str, **headers: str) -> bytes:
    answer = client.get(f"/v1/runs/{run_id}/output", params={"stream": stream}, headers=headers)
    assert answer.status_code in (200, 206), answer.text
    return answer.content


def test_the_whole_output_is_there_after_a_crash(service: Service, http: httpx.Client) -> None:
    """Of a run that had ended, and of one that goes on: each byte, also by range."""
    box = create_sandbox(http)
    code = "import sys, os\nos.write(1, bytes(range(256)) * 8192)\nprint('told', file=sys.stderr)"
    done = http.post(f"/v1/sandboxes/{box['id']}/runs", json={"code": code}).json()
    going = begin(http, box["id"], f"import sys\nsys.stdout.write('x' * 3_000_000 + 'begun'); sys.stdout.flush()\n{UNTIL_TOLD}")
    wait_until(lambda: record(http, going)["state"] == "running", 60, "the second run has begun")
    wait_until(lambda: b"begun" in output_of(http, going, "stdout"), 60, "the second run has written")
    service.kill("cloisterd")
    wanted = bytes(range(256)) * 8192
    assert output_of(http, done["id"], "stdout") == wanted
    assert output_of(http, done["id"], "stderr") == b"told\n"
    assert output_of(http, done["id"], "stdout", Range="bytes=1000-1999") == wanted[1000:2000]
    assert output_of(http, done["id"], "stdout", Range="bytes=-5") == wanted[-5:]
    assert output_of(http, going, "stdout").startswith(b"x" * 3_000_000 + b"begun")
    http.put(f"/v1/sandboxes/{box['id']}/files", params={"path": "stop"}, content=b"")
    assert end_of(http, going)["end_reason"] == "ok"
    service.kill("cloisterd")
    assert output_of(http, going, "stdout").startswith(b"x" * 3_000_000 + b"begun")
    again = record(http, done["id"])
    assert (again["stdout"]["bytes"], again["stdout"]["omitted_bytes"]) == (len(wanted), done["stdout"]["omitted_bytes"])
    assert http.delete(f"/v1/sandboxes/{box['id']}").status_code == 204


def kept_note(run: dict[str, Any]) -> int:
    """How many bytes fewer than 1 MiB of the output are in the answer: head and tail are cut at characters."""
    shown = run["stdout"]["text"]
    note = shown[shown.index("\n[… ") : shown.index(" …]\n") + len(" …]\n")]
    return 1024 * 1024 - (len(shown) - len(note))


def test_an_orderly_stop_still_ends_everything(build: Build) -> None:
    with running(Service(build)) as service:
        with new_client(service, Authorization=f"Bearer {service.key}") as client:
            run_id = begin(client, create_sandbox(client)["id"], COUNTING.format(lines=1000, pause=0.1))
            wait_for_output(client, run_id, "0\n")
            begun = time.monotonic()
            assert service.stop() == 0
            assert time.monotonic() - begun < 20
        assert service.leftovers() == []
        service.serve()
        with new_client(service, Authorization=f"Bearer {service.key}") as client:
            assert record(client, run_id)["end_reason"] == "cancelled"


def test_contexts_are_there_after_a_crash(service: Service, http: httpx.Client) -> None:
    """Interpreters with their variables, one that has none yet, and what runs and waits in them."""
    path = f"/v1/sandboxes/{create_sandbox(http)['id']}"
    first = http.post(f"{path}/contexts", json={"env": {"MINE": "1"}, "cwd": "/tmp"}).json()
    second = http.post(f"{path}/contexts", json={"language": "bash"}).json()
    removed = http.post(f"{path}/contexts", json={"language": "bash"}).json()
    assert http.delete(f"{path}/contexts/{removed['id']}").status_code == 204
    for code, context in (("kept = 7", first), ("kept=8", second)):
        assert http.post(f"{path}/runs", json={"code": code, "context_id": context["id"]}).json()["end_reason"] == "ok"
    running = begin(http, path.split("/")[-1], UNTIL_TOLD, context_id=first["id"])
    waiting = begin(http, path.split("/")[-1], "import os; print(kept, os.environ['MINE'])", context_id=first["id"])
    wait_until(lambda: record(http, running)["state"] == "running", 60, "the first run goes on")
    service.kill("cloisterd")
    contexts = http.get(f"{path}/contexts").json()["contexts"]
    fields = ("id", "language", "cwd", "default", "created_at")
    assert [[entry[field] for field in fields] for entry in contexts] == [
        [entry[field] for field in fields] for entry in (first, second)
    ]
    done = http.post(f"{path}/runs", json={"code": "echo $kept", "context_id": second["id"]}).json()
    assert (done["end_reason"], done["stdout"]["text"]) == ("ok", "8\n")
    http.put(f"{path}/files", params={"path": "/tmp/stop"}, content=b"")
    assert end_of(http, running)["end_reason"] == "ok"
    assert end_of(http, waiting)["stdout"]["text"] == "7 1\n"
    http.delete(path)
