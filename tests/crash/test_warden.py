"""kill -9 of the warden: sandboxes hang from their nests, so they and their runs go on, and the next warden has them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from conftest import create_sandbox, new_client
from service import Build, Service, processes_in_group, running, wait_until, zygotes

SERVING_AGAIN_SECONDS = 5
LINES = 60
CODE = f"import time\nfor i in range({LINES}):\n    print(i, flush=True)\n    time.sleep(0.1)"
OUTPUT = "".join(f"{i}\n" for i in range(LINES))


def begin_run(client: httpx.Client, sandbox_id: str, code: str = CODE) -> str:
    answer = client.post(f"/v1/sandboxes/{sandbox_id}/runs", json={"code": code, "wait": False})
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


def run_of(client: httpx.Client, run_id: str) -> dict[str, Any]:
    return client.get(f"/v1/runs/{run_id}").json()


def has_begun(client: httpx.Client, run_id: str) -> bool:
    return run_of(client, run_id)["state"] == "running"


def works(client: httpx.Client) -> bool:
    done = client.post("/v1/runs", json={"code": "print('alive')"}).json()
    return done.get("stdout", {}).get("text") == "alive\n"


@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.full)])
def test_a_killed_warden_loses_no_sandbox(count: int, server: Service, client: httpx.Client) -> None:
    ids = [create_sandbox(client, memory_mb=128)["id"] for _ in range(count)]
    for sandbox_id in ids:
        client.post(f"/v1/sandboxes/{sandbox_id}/runs", json={"code": "kept = 41"}).raise_for_status()
    runs = [begin_run(client, sandbox_id) for sandbox_id in ids]
    wait_until(lambda: all(has_begun(client, run) for run in runs), 60, "every run has begun")
    cloisterd = server.program("cloisterd").pid

    seconds = server.kill("cloister-warden")

    assert seconds < SERVING_AGAIN_SECONDS
    assert server.program("cloisterd").pid == cloisterd, "the server goes on"
    assert works(client), "a new sandbox can be made"
    wait_until(lambda: all(run_of(client, run)["state"] == "ended" for run in runs), 120, "every run has ended")
    for run in runs:
        ended = run_of(client, run)
        assert (ended["end_reason"], ended["stdout"]["text"]) == ("ok", OUTPUT)
    last = client.post(f"/v1/sandboxes/{ids[-1]}/runs", json={"code": "print(kept + 1)"}).json()
    assert last["stdout"]["text"] == "42\n", "its variables are there"
    for sandbox_id in ids:
        assert client.delete(f"/v1/sandboxes/{sandbox_id}").status_code == 204
    assert not [name for name in server.subvolumes() if name.split("/")[1] in ids]
    assert not any(processes_in_group(sandbox_id) for sandbox_id in ids)


def test_killed_again_and_again(server: Service, client: httpx.Client) -> None:
    sandbox = create_sandbox(client)
    run_id = begin_run(client, sandbox["id"])
    wait_until(lambda: has_begun(client, run_id), 30, "the run runs")
    for _ in range(3):
        server.kill("cloister-warden")
    wait_until(lambda: run_of(client, run_id)["state"] == "ended", 60, "the run ends")
    assert run_of(client, run_id)["stdout"]["text"] == OUTPUT
    assert client.delete(f"/v1/sandboxes/{sandbox['id']}").status_code == 204


def test_what_dies_without_a_warden_is_heard_of(server: Service, client: httpx.Client) -> None:
    victim, neighbour = create_sandbox(client), create_sandbox(client)
    run_id = begin_run(client, victim["id"])
    wait_until(lambda: has_begun(client, run_id), 30, "the run runs")
    agent = min(processes_in_group(victim["id"]))

    os.kill(server.program("cloister-warden").pid, signal.SIGKILL)
    os.kill(agent, signal.SIGKILL)

    wait_until(lambda: run_of(client, run_id)["state"] == "ended", 10, "the run ends")
    assert run_of(client, run_id)["end_reason"] == "sandbox_lost"
    wait_until(lambda: works(client), 30, "the next warden serves")
    wait_until(lambda: not any(victim["id"] in name for name in server.subvolumes()), 10, "its files are gone")
    still = client.post(f"/v1/sandboxes/{neighbour['id']}/runs", json={"code": "print(1)"}).json()
    assert still["end_reason"] == "ok"
    assert client.delete(f"/v1/sandboxes/{neighbour['id']}").status_code == 204


@pytest.fixture(scope="module")
def own(build: Build) -> Iterator[Service]:
    """A service of this module's, prepared and not running."""
    with running(Service(build)) as service:
        assert service.stop() == 0
        yield service


def test_a_killed_supervisor_takes_its_programs_with_it_but_no_sandbox(own: Service) -> None:
    own.serve()
    with new_client(own, Authorization=f"Bearer {own.key}") as client:
        sandbox = create_sandbox(client)
        os.kill(own.program("cloister").pid, signal.SIGKILL)
        wait_until(lambda: not own.programs(), 10, "our programs are dead")
        assert processes_in_group(sandbox["id"]), "killed, they ended nothing"
        own.serve()
        assert works(client)
    assert own.stop() == 0
    assert own.leftovers() == []


def way_of_a_start(client: httpx.Client) -> str:
    return client.post("/v1/runs", json={"code": "1"}).json().get("started_as", "")


def test_a_new_warden_goes_on_with_the_zygote(own: Service) -> None:
    own.serve()
    with new_client(own, Authorization=f"Bearer {own.key}") as client:
        wait_until(lambda: way_of_a_start(client) == "forked", 120, "there is a zygote")
        old = zygotes(own.group_name())[0]
        own.kill("cloister-warden")
        wait_until(lambda: way_of_a_start(client) == "forked", 60, "it forks as before")
        assert zygotes(own.group_name())[0] == old
        os.kill(old, signal.SIGKILL)
        assert works(client), "without it, too"
        wait_until(lambda: way_of_a_start(client) == "forked", 120, "the new warden has another one started")
        assert zygotes(own.group_name())[0] != old
    assert own.stop() == 0
    assert own.leftovers() == []


FAILPOINTS = ["warden:after_journal", "warden:after_files", "warden:after_order", "warden:after_running"]


def test_a_create_that_breaks_off_may_be_tried_again(own: Service) -> None:
    """The warden dies in the middle; what it had begun is cleared up, and the answer says: try again."""
    try:
        for own.failpoint in FAILPOINTS:
            own.serve()
            with new_client(own, Authorization=f"Bearer {own.key}") as client:
                broken = client.post("/v1/sandboxes", json={})
                assert broken.status_code == 503, broken.text
                assert broken.headers["retry-after"]
                wait_until(lambda c=client: works(c), 30, "sandboxes can be made again")
                assert client.get("/v1/sandboxes").json()["sandboxes"] == []
                wait_until(lambda: not own.subvolumes(), 10, f"nothing is left of {own.failpoint}")
            assert own.stop() == 0
            assert own.leftovers() == []
    finally:
        own.failpoint = ""
