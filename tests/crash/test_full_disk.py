"""C05 for database, log and spools: there is no room: typed answers, nothing breaks, and it recovers by itself."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import create_sandbox, new_client
from service import Build, Service, processes_in_group, running, wait_until
from sse import read_events


@contextlib.contextmanager
def small_disk(place: Path, size: int) -> Iterator[Path]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.fixture
def cramped(build: Build) -> Iterator[Service]:
    """A service whose state lies on a disk of 4 MiB."""
    service = Service(build)
    state = service.data / "state"
    state.mkdir(mode=0o700)
    with small_disk(state, 4 << 20):
        try:
            service.start()
            yield service
        finally:
            service.stop()
            service.kill_rest()
    service.remove()


def fill(disk: Path) -> Path:
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return filler


def refused(answer: httpx.Response) -> bool:
    if answer.status_code < 400:
        return False
    error: dict[str, Any] = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (503, "unavailable"), error
    assert "full" in error["message"] and "free some space" in error["message"]
    return True


def test_the_database_has_no_room(cramped: Service) -> None:
    with new_client(cramped, Authorization=f"Bearer {cramped.key}") as client:
        box = create_sandbox(client)
        runs = f"/v1/sandboxes/{box['id']}/runs"
        before = client.post(runs, json={"code": "x = 1; print('before')"}).json()
        going = {"code": "import time; print('going', flush=True); time.sleep(4); print('on')", "wait": False}
        under_way = client.post(runs, json=going).json()["id"]
        wait_until(lambda: "going" in client.get(f"/v1/runs/{under_way}").json()["stdout"]["text"], 30, "it runs")

        filler = fill(cramped.data / "state")
        big, small = {"metadata": {"fill": "x" * 15_000}}, {"code": "print(2)", "wait": False}
        others = until_refused(lambda: client.post("/v1/sandboxes", json=big))
        taken = until_refused(lambda: client.post(runs, json=small))

        # Reading goes on, and so does what was under way; its end is answered though it cannot be stored.
        assert client.get(f"/v1/runs/{before['id']}").json()["stdout"]["text"] == "before\n"
        assert client.get(f"/v1/sandboxes/{box['id']}").json() == box
        assert client.get("/healthz").status_code == 200
        wait_until(lambda: client.get(f"/v1/runs/{under_way}").json()["state"] == "ended", 60, "it ends")
        assert client.get(f"/v1/runs/{under_way}").json()["stdout"]["text"] == "going\non\n"

        for run_id in taken:
            wait_until(lambda one=run_id: client.get(f"/v1/runs/{one}").json()["state"] == "ended", 60, "it ends")
        for sandbox_id in others:
            assert client.delete(f"/v1/sandboxes/{sandbox_id}").status_code == 204

        assert "a run's end was not stored yet" in cramped.log_text()

        filler.unlink()
        wait_until(lambda: not refused(client.post(runs, json={"code": "print(x)"})), 20, "runs are taken again")
        wait_until(lambda: all_is_stored(cramped, [under_way, *taken], others), 30, "what had no room is stored")
        assert create_sandbox(client)["state"] == "running"
        listed = {one["id"] for one in client.get("/v1/sandboxes").json()["sandboxes"]}
        assert box["id"] in listed and not listed & set(others)

        # A successor reads the same.
        cramped.kill("cloisterd")
        assert client.get(f"/v1/runs/{under_way}").json()["stdout"]["text"] == "going\non\n"
        assert client.post(runs, json={"code": "print(x)"}).json()["stdout"]["text"] == "1\n"
    assert cramped.stop() == 0
    assert cramped.sanitizer_reports() == []
    cramped.log.unlink()


def until_refused(post: Callable[[], httpx.Response]) -> list[str]:
    """The database's own files may have some room left; answers the ids of what was made."""
    made = []
    for _ in range(60):
        answer = post()
        if refused(answer):
            return made
        made.append(answer.json()["id"])
    raise AssertionError("a full disk was not noticed")


def all_is_stored(service: Service, runs: list[str], dead: list[str]) -> bool:
    database = sqlite3.connect(f"file:{service.data}/state/cloister.db?mode=ro", uri=True, timeout=10)
    with database:
        assert [row[0] for row in database.execute("PRAGMA integrity_check")] == ["ok"]
        ended = {row[0] for row in database.execute("SELECT id FROM runs WHERE ended_ms IS NOT NULL")}
        buried = {row[0] for row in database.execute("SELECT id FROM sandboxes WHERE state = 'dead'")}
    database.close()
    return set(runs) <= ended and set(dead) <= buried


def test_the_log_has_no_room(build: Build, tmp_path: Path) -> None:
    service = Service(build)
    service.log.unlink(missing_ok=True)
    with small_disk(tmp_path, 1 << 20) as disk:
        service.log = disk / "service.log"
        try:
            service.start()
            filler = fill(disk)
            written = service.log.stat().st_size
            with new_client(service, Authorization=f"Bearer {service.key}") as client:
                runs = f"/v1/sandboxes/{create_sandbox(client)['id']}/runs"
                assert client.post(runs, json={"code": "x = 1"}).json()["end_reason"] == "ok"
                service.kill("cloisterd")
                assert client.post(runs, json={"code": "print(x)"}).json()["stdout"]["text"] == "1\n"
                filler.unlink()
                client.delete(runs.removesuffix("/runs"))
                wait_until(lambda: service.log.stat().st_size > written, 20, "it is written on")
            assert service.stop() == 0
            assert service.leftovers() == []
            assert service.sanitizer_reports() == []
        finally:
            service.kill_rest()
    service.remove()


@pytest.fixture
def roomy(build: Build) -> Iterator[tuple[Service, httpx.Client]]:
    with running(Service(build)) as service, new_client(service, Authorization=f"Bearer {service.key}") as client:
        yield service, client


def test_a_death_that_the_database_refuses_is_stored_later(roomy: tuple[Service, httpx.Client]) -> None:
    service, client = roomy
    box = create_sandbox(client)["id"]
    refuse = "BEGIN SELECT RAISE(ABORT, 'the test refuses it'); END"
    in_database(service, f"CREATE TRIGGER refuse BEFORE UPDATE ON sandboxes WHEN NEW.state = 'dead' {refuse}")

    assert client.delete(f"/v1/sandboxes/{box}").status_code == 204
    assert client.get(f"/v1/sandboxes/{box}").json()["state"] == "dead"
    assert not processes_in_group(box)
    assert "a sandbox's end was not stored yet" in service.log_text()
    assert state_of(service, box) == "running"

    in_database(service, "DROP TRIGGER refuse")
    wait_until(lambda: state_of(service, box) == "dead", 60, "it is tried again")


def in_database(service: Service, statement: str, *values: str) -> list[Any]:
    database = sqlite3.connect(service.data / "state" / "cloister.db", timeout=10)
    try:
        with database:
            return database.execute(statement, values).fetchall()
    finally:
        database.close()


def state_of(service: Service, sandbox_id: str) -> str:
    return str(in_database(service, "SELECT state FROM sandboxes WHERE id = ?", sandbox_id)[0][0])


BLOCK, BLOCKS = 65536, 40
FLOODS_AND_WAITS = f"""
import os, sys, time
for _ in range({BLOCKS}):
    sys.stdout.write('x' * {BLOCK}); sys.stdout.flush()
while not os.path.exists('stop'): time.sleep(0.05)
print('after')
"""


def test_a_spool_has_no_room(roomy: tuple[Service, httpx.Client]) -> None:
    """Who reads along gets everything; a server that comes later gets what there was room for, and is told the rest."""
    service, client = roomy
    full, other = create_sandbox(client)["id"], create_sandbox(client)["id"]
    pool = Path(f"/proc/{service.program('cloister-warden').pid}/root{service.data}/run/pool")
    exhaust(pool / "spools" / full)

    def run(box: str, code: str, **more: Any) -> dict[str, Any]:
        answer: dict[str, Any] = client.post(f"/v1/sandboxes/{box}/runs", json={"code": code, **more}).json()
        return answer

    def stdout_bytes(run_id: str) -> int:
        return int(client.get(f"/v1/runs/{run_id}").json()["stdout"]["bytes"])

    run(full, "x = 1")
    flood = run(full, FLOODS_AND_WAITS, wait=False)["id"]
    wait_until(lambda: stdout_bytes(flood) == BLOCKS * BLOCK, 60, "all output has come")
    assert run(other, "print(2)")["stdout"]["text"] == "2\n"

    service.kill("cloisterd")
    client.put(f"/v1/sandboxes/{full}/files", params={"path": "stop"}, content=b"").raise_for_status()
    wait_until(lambda: client.get(f"/v1/runs/{flood}").json()["state"] == "ended", 60, "it ends")
    assert client.get(f"/v1/runs/{flood}").json()["end_reason"] == "ok"
    with client.stream("GET", f"/v1/runs/{flood}/events") as answer:
        events = list(read_events(answer.iter_bytes()))
    dropped = [event.data["bytes"] for event in events if event.type == "dropped"]
    assert sum(dropped) > BLOCK, [event.type for event in events]
    assert [event.type for event in events].count("ended") == 1
    assert run(full, "print(x)")["stdout"]["text"] == "1\n"
    assert run(other, "print(3)")["stdout"]["text"] == "3\n"


def exhaust(subvolume: Path) -> None:
    """Takes all that the subvolume's quota leaves."""
    with (subvolume / "filler").open("wb") as filler:
        end = 0
        for size in (64 << 20, 1 << 20, 64 << 10, 4 << 10):
            with contextlib.suppress(OSError):
                while True:
                    os.posix_fallocate(filler.fileno(), end, size)
                    end += size
    assert end > 0
