"""The pool of warm sandboxes: a create takes one, and nobody can tell but by the time."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from conftest import create_sandbox, new_client
from service import Build, Service, processes_in_group, running, wait_until

LOOK = """
import json, os, random, secrets, uuid, numpy
print(json.dumps([random.random(), float(numpy.random.rand()), secrets.token_hex(), str(uuid.uuid4()), os.urandom(8).hex()]))
"""


@pytest.fixture(scope="module")
def warm(build: Build) -> Iterator[Service]:
    service = Service(build)
    service.options = []  # the usual one
    with running(service):
        yield service


@pytest.fixture(scope="module")
def api(warm: Service) -> Iterator[httpx.Client]:
    with new_client(warm, Authorization=f"Bearer {warm.key}") as http:
        create_sandbox(http)  # the first one of a project makes its pool wanted
        filled(http)
        yield http


def figures(client: httpx.Client) -> dict[str, Any]:
    return client.get("/v1/status").json()["warm"]


def filled(client: httpx.Client) -> None:
    wait_until(lambda: figures(client)["ready"] == figures(client)["target"], 120, "the pool is full")


def run(client: httpx.Client, sandbox_id: str, code: str) -> dict[str, Any]:
    answer = client.post(f"/v1/sandboxes/{sandbox_id}/runs", json={"code": code})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_create_takes_one_and_the_pool_fills_again(api: httpx.Client) -> None:
    filled(api)
    before = figures(api)
    made = create_sandbox(api)
    assert figures(api)["hits"] == before["hits"] + 1
    done = run(api, made["id"], "1 + 1")
    assert done["results"][0]["data"]["text/plain"] == "2"
    assert (done["started_as"], done["execution_count"], done["state_lost"]) == ("forked", 1, False)
    assert len(api.get(f"/v1/sandboxes/{made['id']}/contexts").json()["contexts"]) == 1
    filled(api)
    assert figures(api)["memory_bytes"] <= figures(api)["budget_bytes"]
    api.delete(f"/v1/sandboxes/{made['id']}").raise_for_status()


def test_two_of_the_pool_share_nothing(api: httpx.Client) -> None:
    filled(api)
    made = [create_sandbox(api)["id"] for _ in range(2)]
    seen = [set(run(api, one, LOOK)["stdout"]["text"].strip("[]\n").split(", ")) for one in made]
    assert not seen[0] & seen[1]
    run(api, made[0], "open('/tmp/mine', 'w').write('x'); import os; os.environ['MINE'] = 'x'; secret = 1")
    code = "import os; print(os.path.exists('/tmp/mine'), 'MINE' in os.environ, 'secret' in dir(), os.uname().nodename)"
    assert run(api, made[1], code)["stdout"]["text"] == f"False False False {made[1]}\n"
    listed = "import os; print(sorted(os.listdir('/proc/self/fd')))"
    assert run(api, made[0], listed)["stdout"] == run(api, made[1], listed)["stdout"]
    for one in made:
        api.delete(f"/v1/sandboxes/{one}").raise_for_status()


def test_an_environment_is_there_before_the_first_code(api: httpx.Client) -> None:
    filled(api)
    before = figures(api)["hits"]
    made = create_sandbox(api, env={"COLOUR": "blau"})["id"]
    assert figures(api)["hits"] == before + 1
    done = run(api, made, "import os; print(os.environ['COLOUR'], os.popen('echo $COLOUR').read(), end='')")
    assert done["stdout"]["text"] == "blau blau\n"
    api.delete(f"/v1/sandboxes/{made}").raise_for_status()


def test_many_at_once_while_it_fills(api: httpx.Client) -> None:
    def one(number: int) -> str:
        made = create_sandbox(api)["id"]
        text = run(api, made, f"print({number})")["stdout"]["text"]
        api.delete(f"/v1/sandboxes/{made}").raise_for_status()
        return text

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(one, range(24))) == [f"{number}\n" for number in range(24)]


def test_killing_our_programs_leaves_nothing_unowned(warm: Service, api: httpx.Client) -> None:
    filled(api)
    kept = create_sandbox(api)["id"]
    run(api, kept, "x = 3")
    filled(api)
    for program in ("cloisterd", "cloister-warden"):
        os.kill(warm.program(program).pid, signal.SIGKILL)
    wait_until(lambda: _ready(api), 60, "it serves again")

    def only_known() -> bool:
        listed = {one["id"] for one in api.get("/v1/sandboxes").json()["sandboxes"]}
        there = {name.removeprefix("sandboxes/") for name in warm.subvolumes() if name.startswith("sandboxes/")}
        return there == listed

    wait_until(only_known, 60, "the warm ones of the former server are gone")
    assert run(api, kept, "x")["results"][0]["data"]["text/plain"] == "3"
    assert processes_in_group(kept)


def test_a_warm_one_is_as_one_that_was_made(api: httpx.Client) -> None:
    """History, names, files: no trace of the cell that warmed it up. The server has just been started: its pool is empty."""
    misses = figures(api)["misses"]
    made = create_sandbox(api)["id"]
    assert figures(api)["misses"] == misses + 1
    filled(api)
    warm_one = create_sandbox(api)["id"]
    look = "import os; print(sorted(k for k in globals() if k[0] != '_'), In, Out, sorted(os.listdir('.')), len(os.listdir('/tmp')))"
    assert run(api, made, look)["stdout"]["text"] == run(api, warm_one, look)["stdout"]["text"]
    for one in (made, warm_one):
        api.delete(f"/v1/sandboxes/{one}").raise_for_status()


def _ready(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False
