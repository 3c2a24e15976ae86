"""C02: cloisterd dies at each step at which it writes something down; what its successor finds holds together."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator

import httpx
import pytest
from conftest import create_sandbox, new_client
from service import Build, Service, running, wait_until

RUNS = "/v1/sandboxes/{}/runs"


@pytest.fixture(scope="module")
def service(build: Build) -> Iterator[Service]:
    """One data directory for all steps; each step serves it anew."""
    with running(Service(build)) as service:
        assert service.stop() == 0
        yield service


def create(client: httpx.Client) -> None:
    client.post("/v1/sandboxes", json={})


def run(client: httpx.Client) -> None:
    client.post(RUNS.format(create_sandbox(client)["id"]), json={"code": "print(1)"})


def delete(client: httpx.Client) -> None:
    client.delete(f"/v1/sandboxes/{create_sandbox(client)['id']}")


def one_call(client: httpx.Client) -> None:
    client.post("/v1/runs", json={"code": "print(1)"})


STEPS: list[tuple[str, Callable[[httpx.Client], None]]] = [
    ("after_sandbox_row", create),
    ("after_host_sandbox", create),
    ("after_running_row", create),
    ("after_run_row", run),
    ("after_end_row", run),
    ("after_dead_row", delete),
    ("after_running_row", one_call),
    ("after_run_row", one_call),
    ("after_end_row", one_call),
]


@pytest.mark.parametrize(("step", "act"), STEPS, ids=[f"{act.__name__}-{step}" for step, act in STEPS])
def test_killed(step: str, act: Callable[[httpx.Client], None], service: Service) -> None:
    service.failpoint = f"cloisterd:{step}"
    service.serve()
    try:
        old = service.program("cloisterd").pid
        with new_client(service, Authorization=f"Bearer {service.key}") as client:
            with pytest.raises(httpx.TransportError):
                act(client)
            wait_until(lambda: serves_again(service, old), 30, "cloisterd serves again")
            wait_until(lambda: not broken(service), 20, f"it holds together: {broken(service)}")
            assert one_call_works(client)
    finally:
        assert service.stop() == 0


def serves_again(service: Service, old: int) -> bool:
    try:
        return service.program("cloisterd").pid != old and httpx.get(service.url + "/readyz").status_code == 200
    except (LookupError, httpx.TransportError):
        return False


def one_call_works(client: httpx.Client) -> bool:
    return client.post("/v1/runs", json={"code": "print(2)"}).json()["stdout"]["text"] == "2\n"


def broken(service: Service) -> list[str]:
    """What does not hold together, in words: rows against what is on the host."""
    database = sqlite3.connect(f"file:{service.data}/state/cloister.db?mode=ro", uri=True, timeout=10)
    with database:
        wrong = [row[0] for row in database.execute("PRAGMA integrity_check") if row[0] != "ok"]
        states = dict(database.execute("SELECT id, state FROM sandboxes"))
        unended = list(database.execute("SELECT id, record ->> '$.sandbox_id' FROM runs WHERE ended_ms IS NULL"))
    database.close()
    there = {path.stem for path in (service.data / "run" / "agents").glob("*.sock")}
    running = {sandbox for sandbox, state in states.items() if state == "running"}
    wrong += [f"{sandbox} is {state}" for sandbox, state in states.items() if state not in ("running", "dead")]
    wrong += [f"sandbox {one} has no row that says so" for one in there - running]
    wrong += [f"row {one} is running without a sandbox" for one in running - there]
    wrong += [f"run {one} has neither an end nor a sandbox" for one, sandbox in unended if sandbox not in running]
    return wrong
