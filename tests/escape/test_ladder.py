"""The ladder at a timeout: interrupt, grace, kill of all that the run started, kill of the sandbox.

Each case ends within a second of its timeout, with its output, while another sandbox goes on answering.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import create_sandbox, stream
from service import processes_in_group, wait_until
from sse import Event, text_of

TIMEOUT_MS = 1_000
LATE_MS = 1_000

IGNORES_SIGINT = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
SWALLOWS_INTERRUPTS = "while True:\n    try:\n        while True: pass\n    except KeyboardInterrupt: pass"
REGULAR_EXPRESSION = "import re; re.match(r'(a+)+$', 'a' * 40 + 'b')"
C_LOOP = "while True: sum(range(10 ** 10))"
NUMPY = "import numpy as np; a = np.ones((3000, 3000))\nwhile True: a @ a"
STOPS_ITSELF = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
STOPS_EVERYTHING = "import os, signal; os.kill(-1, signal.SIGSTOP)\nwhile True: pass"
CLOSES_EVERYTHING = "import os, time\nos.closerange(0, 1000)\nwhile True: pass"
FORK_BOMB = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
FORK_AND_EXIT_BOMB = """
import os
if os.fork() == 0:
    while True:
        try:
            if os.fork(): os._exit(0)
        except OSError:
            pass
while True: pass
"""
# Most of the memory is the program's own, so that what it reads and executes is thrown out again and again.
MEMORY_THRASH = """
import mmap, pathlib
size = 130 << 20
area = mmap.mmap(-1, size)
while True:
    for at in range(0, size, 4096): area[at] = 1
    for path in pathlib.Path('/usr/lib').rglob('*.so*'):
        if path.is_file(): path.read_bytes()
"""

CASES = {
    "ignores SIGINT": IGNORES_SIGINT,
    "swallows every interrupt": SWALLOWS_INTERRUPTS,
    "catastrophic regular expression": REGULAR_EXPRESSION,
    "a long call into C": C_LOOP,
    "numpy": NUMPY,
    "stops itself": STOPS_ITSELF,
    "stops everything": STOPS_EVERYTHING,
    "closes all descriptors": CLOSES_EVERYTHING,
    "fork bomb": FORK_BOMB,
    "fork-and-exit bomb": FORK_AND_EXIT_BOMB,
    "memory thrash": MEMORY_THRASH,
}


class Canary:
    """A second sandbox that counts while the first one is attacked."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.id = create_sandbox(client)["id"]
        self.answered = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._count)

    def __enter__(self) -> Canary:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.client.delete(f"/v1/sandboxes/{self.id}")

    def _count(self) -> None:
        while not self._stop.is_set():
            body = {"code": "n = globals().get('n', 0) + 1; print(n)"}
            done = self.client.post(f"/v1/sandboxes/{self.id}/runs", json=body).json()
            if done["stdout"]["text"] != f"{self.answered + 1}\n":
                return
            self.answered += 1
            time.sleep(0.02)


@pytest.fixture
def victim(client: httpx.Client) -> Any:
    made = create_sandbox(client, memory_mb=256)
    yield made
    client.delete(f"/v1/sandboxes/{made['id']}")


def run_events(client: httpx.Client, sandbox: dict[str, Any], code: str) -> list[Event]:
    # So few processes that a bomb of interpreters does not reach the limit on memory first.
    body = {"code": code, "timeout_ms": TIMEOUT_MS, "pids": 64}
    return stream(client, f"/v1/sandboxes/{sandbox['id']}/runs", body)


@pytest.mark.parametrize("name", CASES)
def test_the_ladder_ends_it(name: str, client: httpx.Client, victim: dict[str, Any]) -> None:
    client.post(f"/v1/sandboxes/{victim['id']}/runs", json={"code": "1"})  # the interpreter is up
    with Canary(client) as canary:
        seen = run_events(client, victim, "print('before', flush=True)\n" + CASES[name])
    ended = seen[-1]
    assert ended.type == "ended"
    assert [event.type for event in seen].count("ended") == 1
    assert ended.data["end_reason"] == "timeout", ended.data
    assert text_of(seen, "stdout") == "before\n"
    assert ended.data["metrics"]["wall_ms"] <= TIMEOUT_MS + LATE_MS
    steps = [event.data["action"] for event in seen if event.type == "step"]
    assert steps in (["interrupt"], ["interrupt", "kill"]), steps
    assert canary.answered >= 1
    after = client.post(f"/v1/sandboxes/{victim['id']}/runs", json={"code": "print('again')"}).json()
    assert after["stdout"]["text"] == "again\n", after


@pytest.mark.parametrize("name", ["fork bomb", "fork-and-exit bomb"])
def test_nothing_of_a_bomb_is_left(name: str, client: httpx.Client, victim: dict[str, Any]) -> None:
    run_events(client, victim, CASES[name])
    # The agent, its helper for files, and what is just being reaped.
    wait_until(lambda: len(processes_in_group(victim["id"])) <= 3, 5, "the bomb is gone")


def test_daemons_of_the_run_end_and_earlier_ones_stay(client: httpx.Client, victim: dict[str, Any]) -> None:
    daemon = "import os, time\nos.system('(setsid setsid sleep {} </dev/null >/dev/null 2>&1 &) &')\ntime.sleep(0.3)\n"
    client.post(f"/v1/sandboxes/{victim['id']}/runs", json={"code": daemon.format(3333)})
    run_events(client, victim, daemon.format(4444) + "time.sleep(60)")

    def sleepers() -> set[str]:
        words = []
        for pid in processes_in_group(victim["id"]):
            try:
                words.append(Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0"))
            except OSError:
                continue
        return {line[1] for line in words if line[0] == "sleep"}

    wait_until(lambda: sleepers() == {"3333"}, 5, "only the earlier daemon lives on")


def test_kill_of_everything_leaves_the_agent(client: httpx.Client, victim: dict[str, Any]) -> None:
    done = client.post(f"/v1/sandboxes/{victim['id']}/runs", json={"code": "import os; os.kill(-1, 9)"}).json()
    # The call spares its caller, but not the rest of the user's processes.
    assert done["end_reason"] in ("ok", "kernel_died"), done
    after = client.post(f"/v1/sandboxes/{victim['id']}/runs", json={"code": "print('again')"}).json()
    assert after["stdout"]["text"] == "again\n"


def test_an_agent_that_does_not_answer_costs_its_sandbox(client: httpx.Client) -> None:
    """The last rung is the server's: here the agent itself is stopped, from outside."""
    sandbox = create_sandbox(client)
    client.post(f"/v1/sandboxes/{sandbox['id']}/runs", json={"code": "1"})
    agents = [
        pid
        for pid in processes_in_group(sandbox["id"])
        if Path(f"/proc/{pid}/comm").read_text().startswith("cloister-agent") and "/agent" in cgroup_of(pid)
    ]
    assert agents
    threading.Timer(0.5, lambda: [os.kill(pid, signal.SIGSTOP) for pid in agents]).start()
    seen = run_events(client, sandbox, "print('before', flush=True)\nimport time; time.sleep(60)")
    assert seen[-1].data["end_reason"] == "sandbox_lost", seen[-1].data
    assert TIMEOUT_MS <= seen[-1].data["metrics"]["wall_ms"] <= TIMEOUT_MS + LATE_MS, seen[-1].data
    assert text_of(seen, "stdout") == "before\n"
    assert [event.data["action"] for event in seen if event.type == "step"] == ["kill_sandbox"]
    assert client.get(f"/v1/sandboxes/{sandbox['id']}").json()["state"] == "dead"


def cgroup_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cgroup").read_text()
