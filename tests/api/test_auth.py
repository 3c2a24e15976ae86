"""Who may ask: every route needs a key, and only its own host name opens it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest
from conftest import CONTRACT, new_client
from openapi import Operation
from service import Service

GUARDED = [operation for operation in CONTRACT.operations.values() if operation.needs_key]

WRONG_KEY = "e2b_" + "0" * 40
BAD_HEADERS = {
    "none": {},
    "wrong": {"Authorization": f"Bearer {WRONG_KEY}"},
    "wrong, the other header": {"X-API-Key": WRONG_KEY},
    "malformed": {"Authorization": "Bearer hello"},
    "no key behind the scheme": {"Authorization": "Bearer"},
    "other scheme": {"Authorization": "Basic dXNlcjpwYXNz"},
    "huge": {"Authorization": "Bearer " + "e" * 5000},
}


@pytest.fixture
def revoked_key(client: httpx.Client) -> str:
    made = client.post("/v1/keys", json={"name": "to be revoked"}).json()
    assert client.delete(f"/v1/keys/{made['id']}").status_code == 204
    return made["key"]


@pytest.fixture
def stranger(server: Service) -> Iterator[httpx.Client]:
    with new_client(server) as http:
        yield http


def ask(client: httpx.Client, operation: Operation, **headers: str) -> httpx.Response:
    return client.request(operation.method, operation.url(), headers=headers)


def assert_refused(answer: httpx.Response) -> None:
    assert answer.status_code == 401
    error = answer.json()["error"]
    assert error["code"] == "unauthenticated"
    assert {"Authorization", "X-API-Key"} & set(re.findall(r"[\w-]+", error["message"])), "the message must say what to do"


@pytest.mark.parametrize("headers", BAD_HEADERS.values(), ids=BAD_HEADERS.keys())
def test_no_route_without_a_valid_key(headers: dict[str, str], stranger: httpx.Client) -> None:
    for operation in GUARDED:
        assert_refused(ask(stranger, operation, **headers))


def test_no_route_with_a_revoked_key(revoked_key: str, stranger: httpx.Client) -> None:
    for operation in GUARDED:
        assert_refused(ask(stranger, operation, Authorization=f"Bearer {revoked_key}"))


def test_a_key_in_the_query_is_no_key(server: Service, stranger: httpx.Client) -> None:
    for name in ("key", "api_key", "access_token"):
        assert_refused(stranger.get("/v1/status", params={name: server.key}))


def test_a_new_key_works_until_it_is_revoked(client: httpx.Client, stranger: httpx.Client) -> None:
    made = client.post("/v1/keys", json={"name": "second"}).json()
    headers = {"X-API-Key": made["key"]}
    assert made["key"].startswith("e2b_" + made["prefix"])
    assert stranger.get("/v1/status", headers=headers).status_code == 200
    assert client.delete(f"/v1/keys/{made['id']}").status_code == 204
    assert_refused(stranger.get("/v1/status", headers=headers))
    assert client.delete(f"/v1/keys/{made['id']}").status_code == 404


def test_the_text_of_a_key_is_shown_once(client: httpx.Client) -> None:
    made = client.post("/v1/keys", json={"name": "shown once"}).json()
    listed = client.get("/v1/keys")
    assert made["key"] not in listed.text
    assert [key["name"] for key in listed.json()["keys"] if key["id"] == made["id"]] == ["shown once"]
    client.delete(f"/v1/keys/{made['id']}")


def test_the_last_key_stays(client: httpx.Client) -> None:
    keys = client.get("/v1/keys").json()["keys"]
    assert len(keys) == 1, "an earlier test left a key"
    answer = client.delete(f"/v1/keys/{keys[0]['id']}")
    assert answer.status_code == 409
    assert client.get("/v1/status").status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost.evil.example"]
)
def test_other_host_names_are_refused(host: str, client: httpx.Client) -> None:
    """A page of a stranger whose name points to 127.0.0.1 (DNS rebinding) must not reach us."""
    assert client.get("/v1/status", headers={"Host": host}).status_code == 403
    assert client.get("/healthz", headers={"Host": host}).status_code == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://localhost.evil.example"])
def test_other_origins_are_refused(origin: str, client: httpx.Client) -> None:
    answer = client.post("/v1/sandboxes", headers={"Origin": origin}, json={})
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "permission_denied"


def test_its_own_origin_is_welcome(server: Service, client: httpx.Client) -> None:
    port = server.url.rpartition(":")[2]
    for host in ("127.0.0.1", "localhost"):
        headers = {"Host": f"{host}:{port}", "Origin": f"http://{host}:{port}"}
        assert client.get("/v1/status", headers=headers).status_code == 200


def test_keys_do_not_reach_the_log(server: Service, client: httpx.Client) -> None:
    made = client.post("/v1/keys", json={"name": "secret"}).json()
    client.get("/v1/status", headers={"Authorization": f"Bearer {made['key']}"})
    client.delete(f"/v1/keys/{made['id']}")
    assert made["key"] not in server.log_text()
