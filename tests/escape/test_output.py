"""R10, R11, R12: output in masses. Nothing is lost without a word, and nobody's memory grows."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from attacks import Attacked
from canary import told, typed_end
from service import Service, processes_in_group
from sse import read_events

MIB = 1 << 20
GIB = 1 << 30
# What the server may take on top while output flows: buffers of a run and of its readers; the build under test may
# be one with sanitizers, which keep freed memory for a while.
SERVER_GROWTH = 300 * MIB
AGENT_MAX = 32 * MIB


def resident(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) << 10


def agent_of(sandbox: str) -> int:
    named = [pid for pid in processes_in_group(sandbox) if Path(f"/proc/{pid}/comm").read_text() == "cloister-agent\n"]
    return min(named)


@contextmanager
def flat_memory(server: Service, sandbox: str) -> Iterator[None]:
    """The server and the sandbox's agent stay within their bounds, looked at ten times a second."""
    watched = {"server": server.program("cloisterd").pid, "agent": agent_of(sandbox)}
    before = {name: resident(pid) for name, pid in watched.items()}
    most = dict(before)
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.1):
            for name, pid in watched.items():
                most[name] = max(most[name], resident(pid))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
    assert most["server"] - before["server"] < SERVER_GROWTH, (before, most)
    assert most["agent"] < AGENT_MAX, (before, most)


def test_r10_a_flood_ends_at_its_limit(attacked: Attacked, server: Service) -> None:
    with flat_memory(server, attacked.id):
        done = attacked.cell("flood", str(GIB), output_max_bytes=64 * MIB, timeout_ms=120_000)
    assert typed_end(done) == "output_limit", told(done)
    assert done["stdout"]["bytes"] == 64 * MIB
    assert len(done["stdout"]["text"]) <= MIB and done["stdout"]["omitted_bytes"] > 63 * MIB - 200
    attacked.works_again()


def test_r10_a_flood_is_discarded(attacked: Attacked, server: Service) -> None:
    with flat_memory(server, attacked.id):
        done = attacked.cell("flood", str(GIB), output_max_bytes=MIB, on_output_limit="discard", timeout_ms=120_000)
    assert typed_end(done) == "ok", told(done)
    assert done["metrics"]["output_bytes"] == GIB
    assert done["metrics"]["discarded_bytes"] == GIB - MIB
    attacked.works_again()


@contextmanager
def bounded_disk(attacked: Attacked, most: int) -> Iterator[None]:
    """What the pool holds grows by at most that, looked at once a second."""
    used = lambda: attacked.client.get("/v1/pool").json()["used_bytes"]  # noqa: E731
    before, seen, over = used(), [0], threading.Event()

    def look() -> None:
        while not over.wait(1):
            seen.append(used() - before)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
    assert max(seen) < most, seen


@pytest.mark.full
def test_r10_ten_gigabytes(attacked: Attacked, server: Service) -> None:
    with flat_memory(server, attacked.id), bounded_disk(attacked, 512 * MIB):
        done = attacked.cell("flood", str(10 * 10**9), on_output_limit="discard", timeout_ms=900_000)
    assert typed_end(done) == "ok", told(done)
    assert done["metrics"]["output_bytes"] == 10 * 10**9
    assert done["stdout"]["bytes"] == 256 * MIB
    attacked.works_again()


def test_r10_a_slow_reader_slows_the_flood(attacked: Attacked, server: Service) -> None:
    """While the reader sleeps the program stands still; then it goes on, and nothing is missing."""
    code = (Path(__file__).parent / "programs" / "flood.py").read_text()
    body = {"code": code, "argv": ["flood", str(24 * MIB)]}
    path, headers = f"/v1/sandboxes/{attacked.id}/runs", {"Accept": "text/event-stream"}
    got = 0
    with flat_memory(server, attacked.id), attacked.client.stream("POST", path, json=body, headers=headers) as answer:
        for event in read_events(answer.iter_bytes()):
            if event.type == "stdout":
                if got == 0:
                    time.sleep(3)
                got += len(event.data["text"])
            assert event.type != "dropped"
            if event.type == "ended":
                assert event.data["end_reason"] == "ok" and event.data["metrics"]["wall_ms"] >= 2500
    assert got == 24 * MIB
    attacked.works_again()


@pytest.mark.parametrize("size", [16 * MIB, pytest.param(250 * MIB, marks=pytest.mark.full)])
def test_r11_one_line_of_anything(attacked: Attacked, server: Service, size: int) -> None:
    """It survives byte for byte in the events, which are valid JSON, and in the output that is kept."""
    code = (Path(__file__).parent / "programs" / "one_line.py").read_text()
    body = {"code": code, "argv": ["one_line", str(size)]}
    path, headers = f"/v1/sandboxes/{attacked.id}/runs", {"Accept": "text/event-stream"}
    streamed, written, run_id = hashlib.sha256(), "", ""
    with flat_memory(server, attacked.id), attacked.client.stream("POST", path, json=body, headers=headers) as answer:
        for event in read_events(answer.iter_bytes()):
            json.dumps(event.data)
            if event.type == "started":
                run_id = event.data["run"]["id"]
            if event.type == "stdout":
                exact = event.data.get("base64")
                streamed.update(base64.b64decode(exact) if exact else event.data["text"].encode())
            if event.type == "stderr":
                written += event.data["text"]
    kept = attacked.client.get(f"/v1/runs/{run_id}/output", params={"stream": "stdout"}).content
    assert len(kept) == size
    assert streamed.hexdigest() == hashlib.sha256(kept).hexdigest() == written
    attacked.works_again()


@pytest.mark.full
def test_r11_a_line_of_a_gibibyte(attacked: Attacked, server: Service) -> None:
    """It is kept without loss up to the limit of the run, which ends it."""
    with flat_memory(server, attacked.id), bounded_disk(attacked, 512 * MIB):
        done = attacked.cell("one_line", str(GIB), timeout_ms=600_000)
    assert typed_end(done) == "output_limit", told(done)
    path, most = f"/v1/runs/{done['id']}/output", done["limits"]["output_max_bytes"]
    assert done["stdout"]["bytes"] == most
    with attacked.client.stream("GET", path, params={"stream": "stdout"}) as answer:
        sizes = [len(piece) for piece in answer.iter_bytes()]
    assert sum(sizes) == most
    attacked.works_again()


@pytest.mark.parametrize("what", ["picture", "repr", "traceback"])
def test_r12_a_huge_display(attacked: Attacked, server: Service, what: str) -> None:
    with flat_memory(server, attacked.id):
        done = attacked.cell("huge_displays", what, timeout_ms=120_000)
    assert typed_end(done) == ("error" if what == "traceback" else "ok"), told(done)
    assert len(json.dumps(done)) < 40 * MIB
    if what == "traceback":
        assert done["error"]["name"] == "ValueError"
    else:
        assert "went on" in done["stdout"]["text"]
    attacked.works_again()


@pytest.mark.parametrize("count", [20_000, pytest.param(1_000_000, marks=pytest.mark.full)])
def test_r12_very_many_displays(attacked: Attacked, server: Service, count: int) -> None:
    with flat_memory(server, attacked.id):
        done = attacked.cell("huge_displays", "many", str(count), timeout_ms=600_000)
    assert typed_end(done) == "ok", told(done)
    shown = done["results"]
    left_out = shown[-1]["data"]["text/plain"]
    assert len(shown) == count or "more results are left out" in left_out
    attacked.works_again()
