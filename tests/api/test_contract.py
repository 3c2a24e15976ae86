"""The server has exactly the routes of contract/openapi.yaml, and answers as its schemas say.

The `client` fixture holds every answer of every other test to the contract, too.
"""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from conftest import CONTRACT, Run
from openapi import BODIES, METHODS, Operation

OPERATIONS = list(CONTRACT.operations.values())
PATHS = sorted({operation.path for operation in OPERATIONS})


def methods_of(path: str) -> set[str]:
    return {operation.method for operation in OPERATIONS if operation.path == path}


def url_of(path: str) -> str:
    return next(operation for operation in OPERATIONS if operation.path == path).url()


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_route_exists(operation: Operation, anonymous: httpx.Client) -> None:
    """Without a key a route answers 401 (or works); a path that is not routed would be 404 or 405."""
    answer = anonymous.request(operation.method, operation.url())
    assert answer.status_code == (401 if operation.needs_key else 200)


@pytest.mark.parametrize("path", PATHS)
def test_other_methods_are_refused(path: str, client: httpx.Client) -> None:
    allowed = methods_of(path)
    for method in {method.upper() for method in METHODS} - allowed - {"HEAD", "OPTIONS"}:
        answer = client.request(method, url_of(path))
        assert answer.status_code == 405, method
        assert {word.strip() for word in answer.headers["allow"].split(",")} - {"HEAD", "OPTIONS"} == allowed


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/", "/v2/sandboxes", "/v1/sandboxes/", "/metrics", "/openapi.json"])
def test_other_paths_are_not_found(path: str, client: httpx.Client) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"


@pytest.mark.parametrize("path", [path for path in PATHS if "{" in path])
def test_ids_of_nothing_are_not_found(path: str, client: httpx.Client) -> None:
    for operation in (operation for operation in OPERATIONS if operation.path == path):
        answer = send_minimal(client, operation)
        assert answer.status_code == 404, operation.id
        assert answer.json()["error"]["code"] == "not_found"


def send_minimal(client: httpx.Client, operation: Operation) -> httpx.Response:
    """The smallest request that is right for the operation."""
    body = BODIES.get(operation.id)
    query = {"path": "x", "glob": "*"} if "/files" in operation.path else {}
    parts = [("file", ("x", b""))] if operation.id == "uploadFiles" else None
    return client.request(operation.method, operation.url(), json=body, params=query, files=parts)


def test_the_languages_are_those_of_the_service(client: httpx.Client) -> None:
    request = CONTRACT.operations["createRunInNewSandbox"].request
    assert request is not None
    refused = client.post("/v1/runs", json={"code": "1", "language": "cobol"}).json()["error"]["message"]
    named = re.findall(r"`(\w+)`", refused)
    assert named[0] == "cobol"
    pattern = CONTRACT.resolve(request["properties"]["language"])["pattern"]
    assert pattern == f"^({'|'.join(named[1:])}|jupyter:[A-Za-z0-9._-]+)$"


def test_status_counts_what_is_there(client: httpx.Client, sandbox: dict[str, Any]) -> None:
    status = client.get("/v1/status").json()
    assert status["sandboxes"] >= 1
    assert 0 < status["pool"]["free"] <= status["pool"]["bytes"]
    assert status["limits"]["memory"] == status["limits"]["pids"] == "enforced"


def test_health_needs_no_key(anonymous: httpx.Client) -> None:
    assert anonymous.get("/healthz").json()["status"] == "ok"
    assert anonymous.get("/readyz").json()["status"] == "ok"


def test_an_ended_run_has_all_its_parts(run: Run) -> None:
    done = run("print('out'); open('made.txt', 'w').write('x'); 6 * 7")
    expected = {"context_id", "started_at", "ended_at", "end_reason", "exit_code", "stdout", "stderr", "results"}
    expected |= {"artifacts", "metrics", "last_event", "execution_count", "state_lost", "limits_hit", "started_as"}
    assert expected <= done.keys()
    assert done["created_at"] <= done["started_at"] <= done["ended_at"]
    assert done["metrics"]["output_bytes"] >= 4
