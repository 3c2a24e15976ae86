"""Making, finding and removing sandboxes."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest
from conftest import create_sandbox
from service import wait_until


def test_create_get_list_delete(client: httpx.Client) -> None:
    made = create_sandbox(client, metadata={"task": "demo"}, memory_mb=512, cpu=1, disk_mb=256)
    path = f"/v1/sandboxes/{made['id']}"
    assert (made["memory_mb"], made["cpu"], made["disk_mb"]) == (512, 1, 256)
    assert made["state"] == "running"
    assert client.get(path).json() == made
    assert made in client.get("/v1/sandboxes").json()["sandboxes"]

    assert client.delete(path).status_code == 204
    assert made["id"] not in [one["id"] for one in client.get("/v1/sandboxes").json()["sandboxes"]]
    gone = client.post(f"{path}/runs", json={"code": "1"})
    assert gone.status_code == 404


def test_defaults(sandbox: dict[str, Any]) -> None:
    shown = {name: sandbox[name] for name in ("template", "cpu", "memory_mb", "disk_mb", "idle_timeout_seconds")}
    assert shown == {"template": "base", "cpu": 2, "memory_mb": 2048, "disk_mb": 10240, "idle_timeout_seconds": 1200}
    assert sandbox["metadata"] == {}


def test_an_empty_body_is_the_defaults(client: httpx.Client) -> None:
    answer = client.post("/v1/sandboxes")
    assert answer.status_code == 201
    assert client.delete(f"/v1/sandboxes/{answer.json()['id']}").status_code == 204


def test_the_list_is_newest_first(client: httpx.Client) -> None:
    made = [create_sandbox(client)["id"] for _ in range(3)]
    listed = [one["id"] for one in client.get("/v1/sandboxes").json()["sandboxes"]]
    for sandbox_id in made:
        client.delete(f"/v1/sandboxes/{sandbox_id}")
    assert [one for one in listed if one in made] == made[::-1]


def test_deleting_twice_is_not_found(client: httpx.Client) -> None:
    path = f"/v1/sandboxes/{create_sandbox(client)['id']}"
    assert client.delete(path).status_code == 204
    assert client.delete(path).status_code == 404


@pytest.mark.complaint(6)
def test_deleting_ends_the_running_run(client: httpx.Client) -> None:
    path = f"/v1/sandboxes/{create_sandbox(client)['id']}"
    begun = client.post(f"{path}/runs", json={"code": "import time; time.sleep(60)", "wait": False}).json()
    wait_until(lambda: client.get(f"/v1/runs/{begun['id']}").json()["state"] == "running", 30, "the run is running")
    assert client.delete(path).status_code == 204
    ended = client.get(f"/v1/runs/{begun['id']}").json()
    assert (ended["state"], ended["end_reason"]) == ("ended", "cancelled")


def test_env_of_a_sandbox_reaches_its_runs(client: httpx.Client) -> None:
    made = create_sandbox(client, env={"COLOUR": "blau", "EMPTY": ""})
    code = "import os; print(os.environ['COLOUR'], repr(os.environ['EMPTY']))"
    done = client.post(f"/v1/sandboxes/{made['id']}/runs", json={"code": code}).json()
    client.delete(f"/v1/sandboxes/{made['id']}")
    assert done["stdout"]["text"] == "blau ''\n"


def test_an_idle_sandbox_is_killed(client: httpx.Client) -> None:
    made = create_sandbox(client, idle_timeout_seconds=1, on_idle="kill")
    path = f"/v1/sandboxes/{made['id']}"

    def dead() -> bool:
        answer = client.get(path)
        return answer.status_code == 404 or answer.json()["state"] == "dead"

    wait_until(dead, 10, "the idle sandbox is dead")


@pytest.mark.complaint(2)
def test_a_running_sandbox_is_not_idle(client: httpx.Client) -> None:
    made = create_sandbox(client, idle_timeout_seconds=1, on_idle="kill")
    code = "import time; time.sleep(3); print('awake')"
    done = client.post(f"/v1/sandboxes/{made['id']}/runs", json={"code": code}).json()
    client.delete(f"/v1/sandboxes/{made['id']}")
    assert (done["end_reason"], done["stdout"]["text"]) == ("ok", "awake\n")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cpu", 0),
        ("cpu", 65),
        ("memory_mb", 127),
        ("memory_mb", 10**9),
        ("disk_mb", 63),
        ("idle_timeout_seconds", 0),
        ("idle_timeout_seconds", 2592001),
        ("on_idle", "sleep"),
        ("deadline_seconds", -1),
        ("on_deadline", "sleep"),
        ("template", "no-such-template"),
        ("env", {"A=B": "x"}),
        ("env", {"": "x"}),
        ("env", {"NUL": "a\0b"}),
        ("metadata", {"a": 1}),
        ("metadata", {f"k{i}": "" for i in range(1000)}),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_wrong_field_is_named(field: str, value: Any, client: httpx.Client) -> None:
    answer = client.post("/v1/sandboxes", json={field: value})
    assert answer.status_code == 422, answer.text
    error = answer.json()["error"]
    assert error["field"].startswith(field)
    assert field in error["message"]


@pytest.mark.full
def test_a_hundred_come_and_go(client: httpx.Client) -> None:
    before = client.get("/v1/status").json()
    begin = time.monotonic()
    for _ in range(100):
        client.delete(f"/v1/sandboxes/{create_sandbox(client)['id']}")
    each_ms = (time.monotonic() - begin) * 10
    after = client.get("/v1/status").json()
    assert after["sandboxes"] == before["sandboxes"]
    assert before["pool"]["free"] - after["pool"]["free"] < 64 << 20
    assert each_ms < 1000
