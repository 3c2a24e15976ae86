"""Fixtures of the attacks. Every test in escape/ runs beside a canary and is looked at afterwards: the canary is
unharmed, the service is healthy, and nothing is left on the host.

    def test_a_bomb(small: Attacked) -> None:
        done = small.cell("memory_bomb")           # programs/memory_bomb.py, inside the interpreter
        assert typed_end(done) == "oom"
        small.works_again()
"""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from canary import Canary, Traces, told, typed_end
from conftest import create_sandbox, new_client, not_here
from service import Service

ESCAPE = Path(__file__).parent / "escape"
PROGRAMS = ESCAPE / "programs"
RUN_SECONDS = 30

# Starts a program that lies in the sandbox's home, as `user` or as root, and ends as it ended. Nothing is closed
# for it: what it inherits is what any child of user code inherits.
_START = """
import os, subprocess, sys
words = {words!r}
ended = subprocess.run(words, close_fds=False).returncode
sys.exit(ended if ended >= 0 else 128 - ended)
"""
_COMPILE = """
import subprocess, sys
command = ["gcc", "-D_GNU_SOURCE", "-O1", "-w", "-pthread", "-o", {name!r}, {source!r}]
done = subprocess.run(command, capture_output=True, text=True)
sys.exit(done.stderr or 0)
"""


def pytest_collection_finish(session: pytest.Session) -> None:
    if any(ESCAPE in item.path.parents for item in session.items):
        for gap in gaps_of_this_host():
            not_here(session.config, gap)


def gaps_of_this_host() -> Iterator[str]:
    """Cases of the catalogue that no run on this host, or of this build, can show."""
    if "memory" in v2_controllers():
        yield "R03 with our own watcher of the memory limit: this host has cgroup v2, whose kernel kills the group"
    else:
        yield "R03 with memory.oom.group, R07 and R20 with io.max: this host has its controllers in cgroup v1"
    yield "E05, E13 with nodes in an image, and build bombs: there are no templates of projects yet"
    yield "all cases on the tiers gvisor and microvm: this build has the tier namespace only"


def v2_controllers() -> list[str]:
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    places = [Path(fields[4], "cgroup.controllers") for fields in mounts if "cgroup2" in fields]
    return [word for place in places if place.exists() for word in place.read_text().split()]


@pytest.fixture(scope="session")
def stranger(server: Service) -> Iterator[httpx.Client]:
    """A client of another project of the same service. Its first user is `oracle`: the server starts anew."""
    key = "e2b_" + secrets.token_hex(20)
    add_project(server, key)
    server.kill("cloisterd")
    with new_client(server, Authorization=f"Bearer {key}") as client:
        yield client


def add_project(server: Service, key: str) -> None:
    """There is no operation yet that makes a second project, so this writes its rows."""
    now = int(time.time() * 1000)
    digest = hashlib.sha256(key.encode()).hexdigest()
    database = sqlite3.connect(server.data / "state" / "cloister.db", timeout=10)
    with database:
        database.execute("INSERT INTO projects VALUES (?, 'other', ?)", ("p" * 20, now))
        database.execute(
            "INSERT INTO keys VALUES (?, ?, ?, ?, 'other', ?, NULL, NULL)", ("p" * 20, "k" * 20, digest, key[4:12], now)
        )
    database.close()


@pytest.fixture(scope="session")
def stranger_canary(stranger: httpx.Client, client: httpx.Client) -> Iterator[Canary]:
    """It lives in another project, for as long as the session lasts."""
    bird = Canary(stranger)
    # The nest of the attacked project stays when its sandboxes go, so it is there before anything is counted.
    client.post("/v1/runs", json={"code": "1"})
    yield bird
    bird.close()


@pytest.fixture(autouse=True)
def oracle(request: pytest.FixtureRequest) -> Iterator[None]:
    """What must hold after every attack."""
    if ESCAPE not in request.path.parents:
        yield
        return
    server: Service = request.getfixturevalue("server")
    canary: Canary = request.getfixturevalue("stranger_canary")
    canary.check()
    before = Traces.of(server)
    yield
    canary.check()
    assert httpx.get(f"{server.url}/healthz", trust_env=False).status_code == 200
    before.check_again(server)


class Attacked:
    """A sandbox that a hostile program runs in. What lay in it before must be there afterwards."""

    def __init__(self, client: httpx.Client, **fields: Any) -> None:
        self.client = client
        self.id: str = create_sandbox(client, **fields)["id"]
        self.put("kept.txt", b"kept")

    def put(self, path: str, content: bytes) -> None:
        answer = self.client.put(f"/v1/sandboxes/{self.id}/files", params={"path": path}, content=content)
        assert answer.status_code == 200, answer.text

    def run(self, code: str, **fields: Any) -> dict[str, Any]:
        """A run in the sandbox's interpreter, ended as the contract says."""
        body = {"code": code, "timeout_ms": RUN_SECONDS * 1000} | fields
        patience = 60 + body["timeout_ms"] / 1000
        answer = self.client.post(f"/v1/sandboxes/{self.id}/runs", json=body, timeout=patience)
        assert answer.status_code == 200, answer.text
        done: dict[str, Any] = answer.json()
        typed_end(done)
        return done

    def cell(self, name: str, *argv: str, **fields: Any) -> dict[str, Any]:
        """programs/NAME.py inside the interpreter itself."""
        return self.run((PROGRAMS / f"{name}.py").read_text(), argv=[name, *argv], **fields)

    def program(self, name: str, *argv: str, who: str = "user", **fields: Any) -> dict[str, Any]:
        """programs/NAME.py or NAME.c as a process of its own, as `user` or, through sudo, as root."""
        prefix = ["sudo", "-n"] if who == "root" else []
        words = [*prefix, *self.bring(name), *argv]
        return self.run(_START.format(words=words), **fields)

    def bring(self, name: str) -> list[str]:
        """Puts a program into the sandbox, compiled there if it is C; the words that start it."""
        script, source = PROGRAMS / f"{name}.py", PROGRAMS / f"{name}.c"
        if script.exists():
            self.put(script.name, script.read_bytes())
            return ["/usr/bin/python3", f"/home/user/{script.name}"]
        for file in (source, PROGRAMS / "attempt.h"):
            self.put(file.name, file.read_bytes())
        compiled = self.run(_COMPILE.format(name=name, source=source.name))
        assert compiled["end_reason"] == "ok", compiled["stderr"]["text"]
        return [f"/home/user/{name}"]

    def works_again(self) -> None:
        """The next cell runs, and the files of before are there."""
        done = self.run("print(open('/home/user/kept.txt').read())")
        assert (done["end_reason"], done["stdout"]["text"]) == ("ok", "kept\n"), told(done)

    def delete(self) -> None:
        assert self.client.delete(f"/v1/sandboxes/{self.id}").status_code in (204, 404)


@pytest.fixture
def attacked(client: httpx.Client) -> Iterator[Attacked]:
    """A sandbox of the usual size."""
    box = Attacked(client)
    yield box
    box.delete()


@pytest.fixture
def small(client: httpx.Client) -> Iterator[Attacked]:
    """One that is quickly full: 256 MiB of memory and of disk."""
    box = Attacked(client, memory_mb=256, disk_mb=256)
    yield box
    box.delete()
