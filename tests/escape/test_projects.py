"""What belongs to one project does not exist for another, whatever it asks."""

from __future__ import annotations

from typing import Any

import httpx
from canary import Canary
from conftest import CONTRACT, Run
from openapi import BODIES, Operation

OF_A_THING = [operation for operation in CONTRACT.operations.values() if "{" in operation.path]


def send(client: httpx.Client, operation: Operation, sandbox_id: str, run_id: str, key_id: str) -> httpx.Response:
    query = {"path": "/etc/hostname", "glob": "*"} if "/files" in operation.path else {}
    url = operation.url(sandbox_id=sandbox_id, run_id=run_id, key_id=key_id)
    parts = [("file", ("x", b""))] if operation.id == "uploadFiles" else None
    return client.request(operation.method, url, json=BODIES.get(operation.id), params=query, files=parts)


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


def test_lists_are_of_the_own_project(stranger: httpx.Client, stranger_canary: Canary, sandbox: dict[str, Any]) -> None:
    assert [one["id"] for one in stranger.get("/v1/sandboxes").json()["sandboxes"]] == [stranger_canary.id]
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
