"""Fixtures of the system tests: one service for the whole session, sandboxes in it, and runs in those.

Long cases carry `@pytest.mark.full`; they run only with `--full`, and the summary counts them otherwise.
Cases that need what not every host has carry `@pytest.mark.here(condition, why_not)`; where they cannot run, the
summary says so, as it does for what `not_here` was told.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from openapi import Contract
from service import Build, Service, running
from sse import Event, read_events

pytest_plugins = ["attacks"]

Run = Callable[..., dict[str, Any]]
Events = Callable[..., list[Event]]
Cli = Callable[..., "subprocess.CompletedProcess[str]"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="also the long cases (marker `full`)")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "full: a long case, only with --full")
    config.addinivalue_line("markers", "complaint(number): what users of such services complain about does not happen")
    config.addinivalue_line("markers", "polyglot: a case in the template polyglot, whose image must be in CLOISTER_IMAGE")
    config.addinivalue_line("markers", "here(condition, why_not): a case that only some hosts can run")
    config.stash[_LEFT_OUT] = 0
    config.stash[_NOT_HERE] = []


_LEFT_OUT = pytest.StashKey[int]()
_NOT_HERE = pytest.StashKey[list[str]]()


def not_here(config: pytest.Config, why: str) -> None:
    """What this host, or this build, cannot show; the summary lists it."""
    if why not in config.stash[_NOT_HERE]:
        config.stash[_NOT_HERE].append(why)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    long = [item for item in items if item.get_closest_marker("full") and not config.getoption("--full")]
    impossible = [item for item in items if item not in long and cannot_run_here(item)]
    config.stash[_LEFT_OUT] = len(long)
    items[:] = [item for item in items if item not in long and item not in impossible]
    config.hook.pytest_deselected(items=[*long, *impossible])


def cannot_run_here(item: pytest.Item) -> bool:
    if item.get_closest_marker("polyglot") and not Build.from_environment().layers:
        not_here(item.config, "CLOISTER_IMAGE names no image of the template polyglot: images/layer polyglot builds it")
        return True
    mark = item.get_closest_marker("here")
    if mark is None:
        return False
    condition, why_not = mark.args
    if not condition():
        not_here(item.config, why_not)
        return True
    return False


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if config.stash[_LEFT_OUT]:
        terminalreporter.write_line(f"{config.stash[_LEFT_OUT]} cases only with --full")
    for why in config.stash[_NOT_HERE]:
        terminalreporter.write_line(f"not here: {why}")


@pytest.fixture(scope="session")
def build() -> Build:
    return Build.from_environment()


@pytest.fixture(scope="session")
def server(build: Build, request: pytest.FixtureRequest) -> Iterator[Service]:
    """The running service: `url`, `key`, `data`, `log`. Its end is part of the test: nothing may be left.

    It has the template polyglot only if a test of this session needs that.
    """
    service = Service(build)
    if any(item.get_closest_marker("polyglot") for item in request.session.items):
        service.images += build.layers
    with running(service):
        yield service


CONTRACT = Contract.load()
STREAMS = ("text/event-stream", "application/x-ndjson", "application/octet-stream", "application/x-tar")


def hold_to_contract(response: httpx.Response) -> None:
    """Checks each whole answer that the tests get; streams are read by the tests that ask for them."""
    request = response.request
    operation = CONTRACT.find(request.method, request.url.path)
    streams = response.headers.get("content-type", "").startswith(STREAMS)
    if operation and not streams:
        CONTRACT.check(operation.id, response.status_code, response.headers, response.read())
    elif response.status_code >= 400:
        CONTRACT.check_error(response.read(), f"{request.method} {request.url.path}")


def new_client(server: Service, **headers: str) -> httpx.Client:
    """An HTTP client without a key, whose answers are held to contract/openapi.yaml."""
    hooks = {"response": [hold_to_contract]}
    return httpx.Client(base_url=server.url, headers=headers, timeout=120, trust_env=False, event_hooks=hooks)


@pytest.fixture(scope="session")
def client(server: Service) -> Iterator[httpx.Client]:
    """An HTTP client with the key; one connection pool for the session, as an agent would have."""
    with new_client(server, Authorization=f"Bearer {server.key}") as http:
        yield http


@pytest.fixture(scope="session")
def anonymous(server: Service) -> Iterator[httpx.Client]:
    """The same without a key."""
    with new_client(server) as http:
        yield http


@pytest.fixture
def sandbox(client: httpx.Client) -> Iterator[dict[str, Any]]:
    """A fresh sandbox, deleted afterwards (a test may delete it itself)."""
    made = create_sandbox(client)
    yield made
    assert client.delete(f"/v1/sandboxes/{made['id']}").status_code in (204, 404)


def create_sandbox(client: httpx.Client, **fields: Any) -> dict[str, Any]:
    answer = client.post("/v1/sandboxes", json=fields)
    assert answer.status_code == 201, answer.text
    return answer.json()


@pytest.fixture
def run(client: httpx.Client, sandbox: dict[str, Any]) -> Run:
    """run(code, **fields): runs code in `sandbox` and answers the Run."""
    return runner(client, sandbox)


def runner(client: httpx.Client, sandbox: dict[str, Any], **always: Any) -> Run:
    """The same for any sandbox, with fields that hold for each run."""

    def call(code: str, **fields: Any) -> dict[str, Any]:
        answer = client.post(f"/v1/sandboxes/{sandbox['id']}/runs", json={"code": code, **always, **fields})
        assert answer.status_code == 200, answer.text
        return answer.json()

    return call


@pytest.fixture(scope="module")
def shared(client: httpx.Client) -> Iterator[dict[str, Any]]:
    """One sandbox for a module's tests that leave nothing behind which another would see."""
    made = create_sandbox(client)
    yield made
    assert client.delete(f"/v1/sandboxes/{made['id']}").status_code == 204


def result_text(run: dict[str, Any]) -> str:
    """The one result of a run that ended well, as text."""
    assert run["end_reason"] == "ok", (run.get("error"), run["message"], run["stderr"])
    (shown,) = run["results"]
    return shown["data"]["text/plain"]


@pytest.fixture
def events(client: httpx.Client, sandbox: dict[str, Any]) -> Events:
    """events(code, **fields): runs code in `sandbox` and answers its events, read from the live stream."""

    def call(code: str, **fields: Any) -> list[Event]:
        return stream(client, f"/v1/sandboxes/{sandbox['id']}/runs", {"code": code, **fields})

    return call


@pytest.fixture
def cli(server: Service, tmp_path: Path) -> Cli:
    """cli("run", "-c", "1+1", stdin=...): the `cloister` program as a user calls it, in a directory of its own."""

    def call(
        *words: str, stdin: str | None = None, cwd: Path = tmp_path, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [server.build.program("cloister"), *words],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            cwd=cwd,
            env=server.environment() | environment,
            timeout=120,
        )

    return call


def stream(client: httpx.Client, path: str, body: dict[str, Any]) -> list[Event]:
    """Posts a run and reads its events to the end."""
    headers = {"Accept": "text/event-stream"}
    with client.stream("POST", path, json=body, headers=headers) as answer:
        assert answer.status_code == 200, answer.read()
        return list(read_events(answer.iter_bytes()))
