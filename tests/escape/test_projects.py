"""What belongs to one project does not exist for another, whatever it asks.

There is no operation yet that makes a second project, so the test writes its rows and lets the server start anew.
"""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from conftest import CONTRACT, Run, new_client
from openapi import Operation
from service import Service

OF_A_THING = [operation for operation in CONTRACT.operations.values() if "{" in operation.path]


@pytest.fixture(scope="module")
def stranger(server: Service) -> Iterator[httpx.Client]:
    """A client of another project of the same service."""
    key = "e2b_" + secrets.token_hex(20)
    add_project(server, key)
    server.kill("cloisterd")
    with new_client(server, Authorization=f"Bearer {key}") as client:
        yield client


def add_project(server: Service, key: str) -> None:
    now = int(time.time() * 1000)
    digest = hashlib.sha256(key.encode()).hexdigest()
    database = sqlite3.connect(server.data / "state" / "cloister.db", timeout=10)
    with database:
        database.execute("INSERT INTO projects VALUES (?, 'other', ?)", ("p" * 20, now))
        database.execute(
            "INSERT INTO keys VALUES (?, ?, ?, ?, 'other', ?, NULL, NULL)", ("p" * 20, "k" * 20, digest, key[4:12], now)
        )
    database.close()


def send(client: httpx.Client, operation: Operation, sandbox_id: str, run_id: str, key_id: str) -> httpx.Response:
    body: dict[str, Any] | None = {"code": "1"} if operation.id == "createRun" else None
    query = {"path": "/etc/hostname"} if operation.path.endswith("/files") else {}
    url = operation.url(sandbox_id=sandbox_id, run_id=run_id, key_id=key_id)
    return client.request(operation.method, url, json=body, params=query)


def test_nothing_of_another_project_is_found(
    stranger: httpx.Client, client: httpx.Client, run: Run, sandbox: dict[str, Any]
) -> None:
    done = run("open('mine.txt', 'w').write('secret')")
    key_id = client.get("/v1/keys").json()["keys"][0]["id"]
    for operation in OF_A_THING:
        answer = send(stranger, operation, sandbox["id"], done["id"], key_id)
        assert answer.status_code == 404, operation.id
        assert "secret" not in answer.text
    assert run("print('untouched')")["stdout"]["text"] == "untouched\n"


def test_lists_are_of_the_own_project(stranger: httpx.Client, sandbox: dict[str, Any]) -> None:
    assert stranger.get("/v1/sandboxes").json()["sandboxes"] == []
    assert [key["name"] for key in stranger.get("/v1/keys").json()["keys"]] == ["other"]


def test_an_id_of_another_project_looks_like_one_of_nothing(stranger: httpx.Client, sandbox: dict[str, Any]) -> None:
    """The answers do not tell which ids exist."""

    def told(sandbox_id: str) -> tuple[int, str, str]:
        answer = stranger.get(f"/v1/sandboxes/{sandbox_id}")
        error = answer.json()["error"]
        return answer.status_code, error["code"], error["message"].replace(sandbox_id, "ID")

    assert told(sandbox["id"]) == told("z" * 20)


def test_projects_do_not_share_files_or_processes(stranger: httpx.Client, run: Run) -> None:
    run("import subprocess; open('/tmp/mark', 'w').close(); subprocess.Popen(['sleep', '60'])")
    code = "import os; print(os.path.exists('/tmp/mark'), len([p for p in os.listdir('/proc') if p.isdigit()]) < 5)"
    assert stranger.post("/v1/runs", json={"code": code}).json()["stdout"]["text"] == "False True\n"
