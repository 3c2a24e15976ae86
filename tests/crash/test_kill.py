"""kill -9 of our own programs in the middle of a run: it ends once, we serve again, nothing is left."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import httpx
from conftest import create_sandbox, new_client
from service import Build, Service, processes_in_group, wait_until

SERVING_AGAIN_SECONDS = 5


class Waiting:
    """A client that waits for a run while its server dies."""

    def __init__(self, client: httpx.Client, sandbox_id: str, code: str) -> None:
        body = {"code": code}
        self.error: httpx.TransportError | None = None
        self.answer: httpx.Response | None = None
        self._thread = threading.Thread(target=self._post, args=(client, sandbox_id, body))
        self._thread.start()

    def _post(self, client: httpx.Client, sandbox_id: str, body: dict[str, Any]) -> None:
        try:
            self.answer = client.post(f"/v1/sandboxes/{sandbox_id}/runs", json=body)
        except httpx.TransportError as error:
            self.error = error

    def join(self) -> None:
        self._thread.join(30)
        assert not self._thread.is_alive(), "a client waits for a server that died"


def begin_run(client: httpx.Client, sandbox_id: str) -> str:
    body = {"code": "import time; print('begun', flush=True); time.sleep(300)", "wait": False}
    run_id = client.post(f"/v1/sandboxes/{sandbox_id}/runs", json=body).json()["id"]
    wait_until(lambda: client.get(f"/v1/runs/{run_id}").json()["state"] == "running", 30, "the run runs")
    return run_id


def works(client: httpx.Client) -> bool:
    done = client.post("/v1/runs", json={"code": "print('alive')"}).json()
    return done["stdout"]["text"] == "alive\n"


def test_killed_during_a_run(server: Service, client: httpx.Client) -> None:
    sandbox = create_sandbox(client)
    run_id = begin_run(client, sandbox["id"])
    waiting = Waiting(client, sandbox["id"], "1")

    seconds = server.kill("cloisterd")
    waiting.join()

    assert seconds < SERVING_AGAIN_SECONDS
    ended = client.get(f"/v1/runs/{run_id}").json()
    assert (ended["state"], ended["end_reason"]) == ("ended", "sandbox_lost")
    assert works(client)
    gone = client.get(f"/v1/sandboxes/{sandbox['id']}")
    assert gone.status_code == 404 or gone.json()["state"] == "dead"
    assert sandbox["id"] not in [one["id"] for one in client.get("/v1/sandboxes").json()["sandboxes"]]
    wait_until(lambda: not sandbox_traces(server, sandbox["id"]), 10, "nothing of the lost sandbox is left")


def sandbox_traces(server: Service, sandbox_id: str) -> list[str]:
    """What names a sandbox on the host: processes, cgroups, sockets."""
    found = [f"process {pid}" for pid in processes_in_group(sandbox_id)]
    found += [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/{sandbox_id}")]
    found += [str(path) for path in server.data.rglob(f"*{sandbox_id}*")]
    return found


def test_an_agent_that_dies_takes_its_sandbox_only(server: Service, client: httpx.Client) -> None:
    neighbour = create_sandbox(client)
    client.post(f"/v1/sandboxes/{neighbour['id']}/runs", json={"code": "kept = 1"})
    victim = create_sandbox(client)
    run_id = begin_run(client, victim["id"])

    agent = min(processes_in_group(victim["id"]))  # the first process that the sandbox had
    os.kill(agent, signal.SIGKILL)

    wait_until(lambda: client.get(f"/v1/runs/{run_id}").json()["state"] == "ended", 10, "the run ends")
    assert client.get(f"/v1/runs/{run_id}").json()["end_reason"] == "sandbox_lost"
    still = client.post(f"/v1/sandboxes/{neighbour['id']}/runs", json={"code": "print(kept)"}).json()
    assert still["stdout"]["text"] == "1\n"
    client.delete(f"/v1/sandboxes/{neighbour['id']}")
    client.delete(f"/v1/sandboxes/{victim['id']}")
    wait_until(lambda: not sandbox_traces(server, victim["id"]), 10, "nothing of the lost sandbox is left")


def test_everything_killed_at_once(build: Build) -> None:
    """Sandboxes outlive our programs; the next start finds them and serves."""
    service = Service(build)
    try:
        service.start()
        with new_client(service, Authorization=f"Bearer {service.key}") as client:
            sandbox = create_sandbox(client)
            begin_run(client, sandbox["id"])
            service.kill_rest()
            wait_until(lambda: not service.programs(), 10, "our programs are dead")
            assert processes_in_group(sandbox["id"])
            service.serve()
            assert works(client)
            wait_until(lambda: not sandbox_traces(service, sandbox["id"]), 10, "nothing of it is left")
        assert service.stop() == 0
        assert service.leftovers() == []
        assert service.sanitizer_reports() == []
    finally:
        service.kill_rest()
        service.remove()
    service.log.unlink()
