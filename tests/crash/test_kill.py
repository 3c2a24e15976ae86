"""kill -9 of our own programs in the middle of a run: it ends once, we serve again, nothing is left."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import httpx
from conftest import create_sandbox, new_client
from service import Build, Service, processes_in_group, wait_until

def begin_run(client: httpx.Client, sandbox_id: str) -> str:
    body = {"code": "import time; print('begun', flush=True); time.sleep(300)", "wait": False}
    run_id = client.post(f"/v1/sandboxes/{sandbox_id}/runs", json=body).json()["id"]
    wait_until(lambda: client.get(f"/v1/runs/{run_id}").json()["state"] == "running", 30, "the run runs")
    return run_id


def works(client: httpx.Client) -> bool:
    done = client.post("/v1/runs", json={"code": "print('alive')"}).json()
    return done["stdout"]["text"] == "alive\n"


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
    """Sandboxes outlive our programs; the next start goes on with them."""
    service = Service(build)
    try:
        service.start()
        with new_client(service, Authorization=f"Bearer {service.key}") as client:
            sandbox = create_sandbox(client)
            run_id = begin_run(client, sandbox["id"])
            service.kill_rest()
            wait_until(lambda: not service.programs(), 10, "our programs are dead")
            assert processes_in_group(sandbox["id"])
            service.serve()
            assert works(client)
            assert client.get(f"/v1/sandboxes/{sandbox['id']}").json() == sandbox
            assert client.get(f"/v1/runs/{run_id}").json()["state"] == "running"
            assert client.post(f"/v1/runs/{run_id}/interrupt").status_code == 202
            wait_until(lambda: client.get(f"/v1/runs/{run_id}").json()["state"] == "ended", 10, "the run ends")
            assert client.get(f"/v1/runs/{run_id}").json()["end_reason"] == "interrupted"
            assert client.delete(f"/v1/sandboxes/{sandbox['id']}").status_code == 204
            wait_until(lambda: not sandbox_traces(service, sandbox["id"]), 10, "nothing of it is left")
        assert service.stop() == 0
        assert service.leftovers() == []
        assert service.sanitizer_reports() == []
    finally:
        service.kill_rest()
        service.remove()
    service.log.unlink()
