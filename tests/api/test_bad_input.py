"""Whatever a client sends: a JSON error with a code, words that help, and the right status; and we go on."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from conftest import CONTRACT
from service import Service


@pytest.fixture(autouse=True)
def healthy_afterwards(server: Service, client: httpx.Client) -> Iterator[None]:
    yield
    assert client.get("/readyz").status_code == 200
    assert server.sanitizer_reports() == []


def post(client: httpx.Client, path: str, body: bytes) -> httpx.Response:
    return client.post(path, content=body, headers={"Content-Type": "application/json"})


NOT_JSON = {
    "empty": b"",
    "no JSON": b"hello",
    "half": b'{"code": "1"',
    "something behind it": b'{"code": "1"} {}',
    "a list": b'[{"code": "1"}]',
    "a string": b'"code"',
    "null": b"null",
    "not UTF-8": b'{"code": "\xff\xfe"}',
    "Latin-1": '{"code": "print(\'ü\')"}'.encode("latin-1"),
    "UTF-16": '{"code": "1"}'.encode("utf-16"),
    "half a surrogate pair": b'{"code": "\\ud800"}',
    "raw control character": b'{"code": "a\x01b"}',
    "single quotes": b"{'code': '1'}",
    "deep": b'{"code": "1", "sandbox": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep and unclosed": b'{"a":' * 100_000,
    "huge exponent": b'{"code": "1", "timeout_ms": 1e999999}',
    "NaN": b'{"code": "1", "timeout_ms": NaN}',
}


@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON.keys())
def test_what_is_not_a_json_object(body: bytes, client: httpx.Client) -> None:
    answer = post(client, "/v1/runs", body)
    assert answer.status_code in (400, 422), answer.text
    error = answer.json()["error"]
    assert error["code"] == "invalid_argument"
    assert len(error["message"]) > 20


WRONG_FIELDS: dict[str, dict[str, Any]] = {
    "code": {"code": 1},
    "codee": {"codee": "1"},
    "timeout_ms": {"timeout_ms": "1"},
    "language": {"language": "cobol"},
    "argv": {"argv": "a"},
    "argv.": {"argv": [1]},
    "argv..": {"argv": ["a"] * 257},
    "env": {"env": {"A": 1}},
    "env.": {"env": {"A=B": "1"}},
    "env..": {"env": {"A": "x" * (129 << 10)}},
    "cwd": {"cwd": 1},
    "cwd.": {"cwd": "a\0b"},
    "stdin": {"stdin": 1},
    "stdin_open": {"stdin_open": "yes"},
    "wait": {"wait": 1},
    "on_disconnect": {"on_disconnect": "panic"},
    "timeout_ms.": {"timeout_ms": 0},
    "timeout_ms..": {"timeout_ms": -1},
    "timeout_ms...": {"timeout_ms": 86_400_001},
    "timeout_ms....": {"timeout_ms": 1.5},
    "timeout_ms.....": {"timeout_ms": 10**30},
    "output_max_bytes": {"output_max_bytes": 268_435_457},
    "filename": {"filename": "x" * 256},
    "files": {"files": {}},
    "files[0].path": {"files": [{"content": "x"}]},
    "files[0]": {"files": [{"path": "a"}]},
    "files[0].": {"files": [{"path": "a", "content": "x", "content_base64": "eA=="}]},
    "files[0].content_base64": {"files": [{"path": "a", "content_base64": "***"}]},
    "files[0].path.": {"files": [{"path": "a\0b", "content": ""}]},
    "files[0].path..": {"files": [{"path": "", "content": ""}]},
    "files.": {"files": [{"path": f"f{i}", "content": ""} for i in range(65)]},
    "files[0].mode": {"files": [{"path": "a", "content": "", "mode": 7}]},
    "sandbox": {"sandbox": "base"},
    "sandbox.cpu": {"sandbox": {"cpu": 1000}},
    "sandbox.gpu": {"sandbox": {"gpu": 1}},
}


@pytest.mark.parametrize("field", WRONG_FIELDS)
def test_a_wrong_field_is_named(field: str, client: httpx.Client) -> None:
    answer = client.post("/v1/runs", json={"code": "1"} | WRONG_FIELDS[field])
    assert answer.status_code == 422, answer.text
    error = answer.json()["error"]
    assert error["code"] == "invalid_argument"
    assert error["field"].startswith(field.rstrip("."))
    assert field.rstrip(".").split("[")[0].split(".")[-1] in error["message"]


def test_code_is_required(client: httpx.Client) -> None:
    answer = client.post("/v1/runs", json={})
    assert (answer.status_code, answer.json()["error"]["field"]) == (422, "code")


def test_stdin_in_one_form_only(client: httpx.Client) -> None:
    answer = client.post("/v1/runs", json={"code": "1", "stdin": "x", "stdin_open": True})
    assert answer.status_code == 422


def test_code_over_its_limit(client: httpx.Client) -> None:
    answer = client.post("/v1/runs", json={"code": "#" * ((4 << 20) + 1)})
    assert (answer.status_code, answer.json()["error"]["field"]) == (422, "code")


def test_code_at_its_limit(client: httpx.Client) -> None:
    answer = client.post("/v1/runs", json={"code": "#" * (4 << 20)})
    assert (answer.status_code, answer.json()["end_reason"]) == (200, "ok")


def test_a_body_over_the_limit(client: httpx.Client) -> None:
    answer = client.post("/v1/runs", content=b'{"code": "' + b"#" * (17 << 20) + b'"}')
    assert answer.status_code == 413
    error = answer.json()["error"]
    assert error["code"] == "too_large"
    assert "16" in error["message"], "the message must name the limit"


def test_a_chunked_body_over_the_limit(server: Service) -> None:
    piece = b"#" * (1 << 20)
    answer = raw(server, head("POST", "/v1/runs", server.key, "Transfer-Encoding: chunked"), chunks(piece, 18))
    assert status_of(answer) == 413


def test_an_upload_over_the_limit(server: Service, sandbox: dict[str, Any]) -> None:
    """Refused by its announced length, before any of it is sent."""
    target = f"/v1/sandboxes/{sandbox['id']}/files?path=big"
    answer = raw(server, head("PUT", target, server.key, f"Content-Length: {11 << 30}"))
    assert status_of(answer) == 413


BAD_IDS = [
    "x",
    "A" * 20,
    "a" * 19,
    "a" * 21,
    "%00" * 4,
    "..%2f..%2fetc%2fpasswd",
    "..",
    "a%20b",
    "ä" * 10,
    "1" + "a" * 19,
]


@pytest.mark.parametrize("bad", BAD_IDS)
def test_a_bad_id_is_of_nothing(bad: str, client: httpx.Client) -> None:
    for path in (f"/v1/sandboxes/{bad}", f"/v1/runs/{bad}", f"/v1/runs/{bad}/events"):
        answer = client.get(path)
        assert answer.status_code in (400, 404), path
        assert answer.json()["error"]["code"] in ("not_found", "invalid_argument")


def test_a_wrong_artifact_number(client: httpx.Client) -> None:
    done = client.post("/v1/runs", json={"code": "1"}).json()
    for index in ("-1", "x", "0", "99999999999999999999"):
        assert client.get(f"/v1/runs/{done['id']}/artifacts/{index}").status_code in (400, 404, 422)


# --- HTTP itself, over a raw socket ---


def head(method: str, target: str, key: str, *more: str) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {key}", *more]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def chunks(piece: bytes, count: int) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for _ in range(count)) + b"0\r\n\r\n"


def raw(server: Service, *pieces: bytes) -> bytes:
    """Sends bytes as they are, and answers what comes back until the server closes or 10 s are over."""
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
        except OSError:
            pass  # refused before all was sent: the answer is there to be read
        return receive(connection)


def receive(connection: socket.socket) -> bytes:
    got = b""
    try:
        while not whole(got) and (piece := connection.recv(65536)):
            got += piece
    except OSError:
        pass
    return got


def whole(answer: bytes) -> bool:
    headers, end, body = answer.partition(b"\r\n\r\n")
    length = [line for line in headers.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return bool(end) and bool(length) and len(body) >= int(length[0].split(b":")[1])


def status_of(answer: bytes) -> int:
    assert answer.startswith(b"HTTP/1.1 "), answer[:200]
    return int(answer[9:12])


BAD_HTTP = {
    "garbage": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n", {400}),
    "no version": (b"GET /healthz\r\n\r\n", {400}),
    "HTTP/9": (b"GET /healthz HTTP/9.9\r\nHost: 127.0.0.1\r\n\r\n", {400, 505}),
    "space in a header name": (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nA B: c\r\n\r\n", {400}),
    "control character": (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nA: b\x01\r\n\r\n", {400}),
    "negative length": (b"POST /v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -5\r\n\r\n", {400}),
    "length and chunks": (
        b"POST /v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
        b"\r\n",
        {400},
    ),
    "two lengths": (
        b"POST /v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
        {400},
    ),
    "long header": (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nA: " + b"x" * 100_000 + b"\r\n\r\n", {400, 431}),
    "many headers": (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"A: b\r\n" * 20_000 + b"\r\n", {400, 431}),
    "long target": (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", {400, 414}),
    "broken escape": (b"GET /v1/sandboxes/%zz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", {400, 401, 404}),
}


@pytest.mark.parametrize(("request_bytes", "statuses"), BAD_HTTP.values(), ids=BAD_HTTP.keys())
def test_bad_http(request_bytes: bytes, statuses: set[int], server: Service) -> None:
    answer = raw(server, request_bytes)
    assert status_of(answer) in statuses
    CONTRACT.check_error(answer.partition(b"\r\n\r\n")[2], "bad HTTP")


def test_a_bad_chunk(server: Service) -> None:
    answer = raw(server, head("POST", "/v1/runs", server.key, "Transfer-Encoding: chunked"), b"zz\r\nabc\r\n")
    assert status_of(answer) == 400


def test_a_body_that_breaks_off(server: Service) -> None:
    """The client goes away in the middle: nobody is there to be answered, but the server must go on."""
    host, port = server.url.removeprefix("http://").split(":")
    for _ in range(20):
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(head("POST", "/v1/runs", server.key, "Content-Length: 100") + b'{"code"')


def test_pipelined_requests_are_answered_in_order(server: Service) -> None:
    one, two = head("GET", "/healthz", server.key), head("GET", "/v1/nothing", server.key, "Connection: close")
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(one + two)
        got = b""
        while piece := connection.recv(65536):
            got += piece
    assert got.startswith(b"HTTP/1.1 200")
    assert got.count(b"HTTP/1.1 404") == 1


def test_split_bytes(server: Service) -> None:
    request = head("GET", "/v1/status", server.key)
    answer = raw(server, *(request[i : i + 1] for i in range(len(request))))
    assert status_of(answer) == 200
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["tier"] == "namespace"


def test_expect_continue(server: Service) -> None:
    body = b'{"code": "print(5)"}'
    request = head("POST", "/v1/runs", server.key, f"Content-Length: {len(body)}", "Expect: 100-continue")
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(request)
        assert connection.recv(100).startswith(b"HTTP/1.1 100")
        connection.sendall(body)
        answer = receive(connection)
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["stdout"]["text"] == "5\n"
