"""The limits: what a run may narrow, for how long, and where the numbers come from."""

from __future__ import annotations

import os
from typing import Any

import httpx
import pytest
from conftest import Cli, Run, create_sandbox, new_client
from service import Build, Service, running, wait_until

MIB = 1 << 20


def limit_of(sandbox_id: str, file_v1: str, file_v2: str) -> int:
    """What the sandbox's `user` group has in force now."""
    for root, _, files in os.walk("/sys/fs/cgroup"):
        if f"/{sandbox_id}/user" not in root:
            continue
        for name in (file_v1, file_v2):
            if name in files:
                with open(os.path.join(root, name)) as file:
                    return int(file.read())
    raise LookupError(f"no group of {sandbox_id} has {file_v1} or {file_v2}")


def memory_of(sandbox: dict[str, Any]) -> int:
    return limit_of(sandbox["id"], "memory.limit_in_bytes", "memory.max")


def pids_of(sandbox: dict[str, Any]) -> int:
    return limit_of(sandbox["id"], "pids.max", "pids.max")


def test_a_run_narrows_memory_for_its_time(run: Run, sandbox: dict[str, Any]) -> None:
    done = run("data = b'x' * (300 << 20); print('fits')")
    assert done["stdout"]["text"] == "fits\n"
    run("del data")
    narrow = run("data = b'x' * (300 << 20); print('fits')", memory_max_bytes=200 * MIB)
    assert narrow["end_reason"] == "oom"
    assert narrow["limit"] == {"name": "memory_max_bytes", "value": 200 * MIB}
    wait_until(lambda: memory_of(sandbox) == 2048 * MIB, 5, "the limit is put back")
    assert run("data = b'x' * (300 << 20); print('fits')")["stdout"]["text"] == "fits\n"


def test_a_run_narrows_processes_for_its_time(run: Run, sandbox: dict[str, Any]) -> None:
    code = "import subprocess\nfor p in [subprocess.Popen(['sleep', '0.1']) for _ in range(20)]: p.wait()"
    assert run(code)["end_reason"] == "ok"
    narrow = run(code, pids=12)
    assert narrow["end_reason"] == "pids_limit", narrow
    assert narrow["limit"] == {"name": "pids", "value": 12}
    wait_until(lambda: pids_of(sandbox) == 512, 5, "the limit is put back")


def test_a_sandbox_that_uses_more_is_not_narrowed(run: Run, sandbox: dict[str, Any]) -> None:
    run("data = b'x' * (400 << 20)")
    done = run("print('never')", memory_max_bytes=100 * MIB)
    assert done["end_reason"] == "error"
    assert "the run did not begin" in done["message"]
    assert "free some" in done["message"]
    assert done["stdout"]["text"] == ""
    kept = run("print(len(data) >> 20)")
    assert (kept["stdout"]["text"], kept["state_lost"]) == ("400\n", False)
    assert memory_of(sandbox) == 2048 * MIB


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("memory_max_bytes", 2049 * MIB),
        ("memory_max_bytes", 1),
        ("pids", 513),
        ("pids", 0),
        ("cpu_time_ms", 0),
        ("cpu_time_ms", "5"),
        ("timeout_ms", 86_400_001),
        ("output_max_bytes", 1 << 40),
    ],
)
def test_what_is_out_of_bounds_names_its_field(
    field: str, value: Any, client: httpx.Client, sandbox: dict[str, Any]
) -> None:
    for path in (f"/v1/sandboxes/{sandbox['id']}/runs", "/v1/runs"):
        answer = client.post(path, json={"code": "1", field: value})
        assert answer.status_code == 422, answer.text
        assert answer.json()["error"]["field"] == field


def test_narrowed_limits_do_not_outlast_the_server(build: Build) -> None:
    """cloisterd dies in the middle of a narrowed run: whoever goes on with that run, after it the limits are wide."""
    with running(Service(build)) as service:
        with new_client(service, Authorization=f"Bearer {service.key}") as client:
            sandbox = create_sandbox(client)
            body = {"code": "import time; time.sleep(60)", "wait": False, "memory_max_bytes": 300 * MIB, "pids": 50}
            run_id = client.post(f"/v1/sandboxes/{sandbox['id']}/runs", json=body).json()["id"]
            wait_until(lambda: memory_of(sandbox) == 300 * MIB, 20, "the run is narrowed")
            assert pids_of(sandbox) == 50
            service.kill("cloisterd")
            client.post(f"/v1/runs/{run_id}/interrupt")

            def put_back() -> bool:
                try:
                    return memory_of(sandbox) > 300 * MIB and pids_of(sandbox) > 50
                except LookupError:
                    return True  # the sandbox went with its server

            wait_until(put_back, 10, "the limits are put back")


def test_the_limits_are_answered(client: httpx.Client) -> None:
    rows = {row["name"]: row for row in client.get("/v1/limits").json()["limits"]}
    assert rows["timeout_ms_default"]["value"] == 300_000
    assert rows["output_max_bytes"]["value"] == 256 * MIB
    assert rows["pids"]["unit"] == "count"
    assert all(row["description"] and row["beyond"] for row in rows.values())


def test_usage_tells_the_disk(client: httpx.Client, sandbox: dict[str, Any]) -> None:
    code = "import os, time\nopen('data', 'wb').write(os.urandom(20 << 20)); os.sync(); time.sleep(2)"
    metrics = client.post(f"/v1/sandboxes/{sandbox['id']}/runs", json={"code": code}).json()["metrics"]
    assert metrics["disk_bytes"] >= 20 * MIB
    assert 0 <= metrics["disk_age_ms"] < 5_000


def test_the_cli_narrows(cli: Cli) -> None:
    done = cli("run", "--cpu-time", "300ms", "-c", "while True: pass")
    assert done.returncode == 121
    assert done.stderr.rstrip().endswith("limit cpu_time_ms 300")
    done = cli("run", "--output-max", "2K", "-c", "while True: print('x' * 100)")
    assert done.returncode == 122
    done = cli("run", "--pids", "9999", "-c", "1")
    assert done.returncode == 2
    assert "--pids" in done.stderr


def test_busy_sandboxes_give_way(client: httpx.Client, sandbox: dict[str, Any]) -> None:
    """Its weight falls while it uses a CPU (and CPU time is short), and comes back when it rests."""

    def shares() -> int:
        for root, _, files in os.walk("/sys/fs/cgroup"):
            name = next((n for n in ("cpu.shares", "cpu.weight") if n in files), None)
            if root.endswith(f"/{sandbox['id']}") and name:
                with open(os.path.join(root, name)) as file:
                    return int(file.read())
        raise LookupError(sandbox["id"])

    usual = shares()
    code = (
        "import multiprocessing, time\n"
        "def spin():\n    while True: pass\n"
        "for _ in range(4): multiprocessing.Process(target=spin, daemon=True).start()\n"
        "time.sleep(60)"
    )
    body = {"code": code, "wait": False, "timeout_ms": 10_000}
    client.post(f"/v1/sandboxes/{sandbox['id']}/runs", json=body)
    wait_until(lambda: shares() < usual / 10, 9, "the weight falls")
    wait_until(lambda: shares() == usual, 20, "the weight comes back when the run has ended")
