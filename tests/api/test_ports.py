"""Servers inside sandboxes, reached through the API: with a key, or published; by path and by name."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import websockets
from conftest import Cli
from service import Build, Service, running, wait_until

DOMAIN = "boxes.test"

# Shows what reached it; streams; takes uploads; redirects; speaks WebSocket by hand; breaks off.
SERVER = r"""
import base64, hashlib, http.server, json, socket, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            data = b""
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size); self.rfile.readline()
            self.rfile.readline()
            return data
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))
    def answer(self, status, body, **headers):
        self.send_response(status)
        for name, value in headers.items(): self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data)); self.wfile.flush()
    def work(self):
        path = self.path.partition("?")[0]
        if path == "/stream":
            self.send_response(200); self.send_header("Transfer-Encoding", "chunked"); self.end_headers()
            for i in range(3): self.chunk(b"%d\n" % i); time.sleep(0.3)
            self.chunk(b"")
        elif path == "/upload":
            data = self.body()
            self.answer(200, json.dumps([len(data), hashlib.sha256(data).hexdigest()]).encode())
        elif path == "/large":
            self.answer(200, b"x" * (8 << 20))
        elif path == "/redirect":
            self.answer(302, b"", Location="/there", Set_Cookie="a=b", Connection="X-Secret-Hop", X_Secret_Hop="1", Keep_Alive="timeout=5")
        elif path == "/break":
            self.send_response(200); self.send_header("Content-Length", "100"); self.end_headers()
            self.wfile.write(b"half"); self.wfile.flush(); self.connection.shutdown(2)
        elif path == "/nothing":
            self.connection.shutdown(2)
        elif path == "/ws":
            key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            self.send_response(101)
            self.send_header("Upgrade", "websocket"); self.send_header("Connection", "Upgrade")
            self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
            self.end_headers()
            self.close_connection = True
            while head := self.rfile.read(2):
                size = head[1] & 127
                mask, data = self.rfile.read(4), self.rfile.read(size)
                data = bytes(b ^ mask[i % 4] for i, b in enumerate(data))
                if head[0] & 15 == 8: self.wfile.write(bytes([0x88, size]) + data); return
                self.wfile.write(bytes([head[0], size]) + data[::-1]); self.wfile.flush()
        elif path == "/status":
            self.send_response(204); self.end_headers()
        else:
            shown = {"method": self.command, "path": self.path, "headers": [[k.lower(), v] for k, v in self.headers.items()],
                     "body": self.body().decode("latin1")}
            self.answer(200, json.dumps(shown).encode(), Content_Type="application/json")
    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = work
    def log_message(self, *_): pass
class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET
Server((sys.argv[2], int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture(scope="module")
def box(build: Build) -> Iterator[Box]:
    """A service with a domain, and a sandbox with servers on 8000 (IPv4) and 8006 (IPv6 only)."""
    service = Service(build)
    (service.data / "cloister.toml").write_text(f'domain = "{DOMAIN}"\n')
    service.options += ["--config", str(service.data / "cloister.toml")]
    with running(service):
        box = Box(service)
        box.serve(8000, "127.0.0.1")
        box.serve(8006, "::1")
        yield box
        box.client.close()


class Box:
    def __init__(self, service: Service) -> None:
        self.service = service
        self.key = {"Authorization": f"Bearer {service.key}"}
        self.client = httpx.Client(base_url=service.url, headers=self.key, timeout=60, trust_env=False)
        self.anonymous = httpx.Client(base_url=service.url, timeout=60, trust_env=False)
        self.id: str = self.client.post("/v1/sandboxes", json={}).json()["id"]
        self.client.put(f"/v1/sandboxes/{self.id}/files", params={"path": "server.py"}, content=SERVER.encode())

    @property
    def ports(self) -> str:
        return f"/v1/sandboxes/{self.id}/ports"

    def serve(self, port: int, address: str) -> None:
        body = {"argv": ["python3", "server.py", str(port), address]}
        assert self.client.post(f"/v1/sandboxes/{self.id}/processes", json=body).status_code == 201
        wait_until(lambda: self.client.get(f"{self.ports}/{port}/").status_code == 200, 20, f"port {port} is open")

    def host(self, port: int = 8000) -> str:
        return f"{port}-{self.id}.{DOMAIN}"

    def publish(self, port: int) -> dict[str, Any]:
        answer = self.client.post(self.ports, json={"port": port})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def close(self, port: int) -> None:
        assert self.client.delete(f"{self.ports}/{port}").status_code == 204


def headers_of(shown: dict[str, Any]) -> dict[str, str]:
    return {name: value for name, value in shown["headers"]}


def test_a_request_reaches_the_server(box: Box) -> None:
    shown = box.client.get(f"{box.ports}/8000/a%20b//c", params={"q": "1 2"}, headers={"X-Own": "yes"}).json()
    assert (shown["method"], shown["path"]) in [("GET", "/a%20b//c?q=1+2"), ("GET", "/a%20b//c?q=1%202")]
    seen = headers_of(shown)
    assert (seen["host"], seen["x-own"]) == ("localhost:8000", "yes")
    assert seen["x-forwarded-for"] == "127.0.0.1"
    assert seen["x-forwarded-prefix"] == f"{box.ports}/8000"
    assert seen["x-forwarded-host"] == box.service.url.removeprefix("http://")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_every_method(box: Box, method: str) -> None:
    shown = box.client.request(method, f"{box.ports}/8000/x", content=b"body").json()
    assert (shown["method"], shown["body"]) == (method, "body")


def test_head_has_no_body(box: Box) -> None:
    answer = box.client.head(f"{box.ports}/8000/x")
    assert (answer.status_code, answer.content) == (200, b"")


def test_a_server_on_ipv6_only(box: Box) -> None:
    assert box.client.get(f"{box.ports}/8006/six").json()["path"] == "/six"


@pytest.mark.parametrize("sent", ["Authorization", "X-API-Key"])
def test_the_key_never_reaches_it(box: Box, sent: str) -> None:
    value = f"Bearer {box.service.key}" if sent == "Authorization" else box.service.key
    for url, headers in ((f"{box.ports}/8000/", {}), ("/", {"Host": box.host()})):
        answer = box.anonymous.get(url, headers={sent: value, **headers})
        assert answer.status_code == 200
        assert box.service.key not in answer.text


def test_a_key_of_the_servers_own_does(box: Box) -> None:
    headers = {"X-API-Key": box.service.key, "Authorization": "Basic dXNlcjpwYXNz"}
    assert headers_of(box.anonymous.get(f"{box.ports}/8000/", headers=headers).json())["authorization"] == "Basic dXNlcjpwYXNz"


def test_headers_of_a_connection_stay_there(box: Box) -> None:
    sent = {"Connection": "close, X-Hop", "X-Hop": "1", "TE": "trailers", "Proxy-Authorization": "x", "Keep-Alive": "1"}
    seen = headers_of(box.client.get(f"{box.ports}/8000/", headers=sent).json())
    assert not {"x-hop", "te", "proxy-authorization", "keep-alive"} & seen.keys()
    answer = box.client.get(f"{box.ports}/8000/redirect")
    assert not {"x-secret-hop", "keep-alive"} & answer.headers.keys()
    assert (answer.status_code, answer.headers["set-cookie"]) == (302, "a=b")
    assert answer.headers["location"] == f"{box.ports}/8000/there"


def test_an_answer_streams(box: Box) -> None:
    begin = time.monotonic()
    with box.client.stream("GET", f"{box.ports}/8000/stream") as answer:
        first = next(pieces := answer.iter_raw())
        assert time.monotonic() - begin < 0.6
        assert b"0\n" in first
        assert b"".join([first, *pieces]) == b"0\n1\n2\n"


@pytest.mark.parametrize("form", ["length", "chunked"])
def test_an_upload(box: Box, form: str) -> None:
    data = bytes(range(256)) * (8 << 12)
    pieces = (data[at : at + 100_000] for at in range(0, len(data), 100_000))
    content = data if form == "length" else pieces
    size, digest = box.client.post(f"{box.ports}/8000/upload", content=content).json()
    assert (size, digest) == (len(data), hashlib.sha256(data).hexdigest())


def test_a_large_answer(box: Box) -> None:
    assert box.client.get(f"{box.ports}/8000/large").content == b"x" * (8 << 20)


def test_an_answer_without_a_body(box: Box) -> None:
    answer = box.client.get(f"{box.ports}/8000/status")
    assert (answer.status_code, answer.content) == (204, b"")


def test_a_server_that_breaks_off_is_seen(box: Box) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        box.client.get(f"{box.ports}/8000/break")
    answer = box.client.get(f"{box.ports}/8000/nothing")
    assert answer.status_code == 502


def test_a_port_that_nobody_listens_on(box: Box) -> None:
    answer = box.client.get(f"{box.ports}/9/")
    assert answer.status_code == 502
    assert "port 9" in answer.json()["error"]["message"]


@pytest.mark.parametrize("port", ["0", "65536", "08000", "+8000", "8000x", "-1", "8e3", "%38000"])
def test_what_is_no_port(box: Box, port: str) -> None:
    assert box.client.get(f"{box.ports}/{port}/").status_code == 404


def test_nothing_is_reachable_unless_published(box: Box) -> None:
    asked = [(f"{box.ports}/8000/x", {}), ("/x", {"Host": box.host()})]
    for url, headers in asked:
        answer = box.anonymous.get(url, headers=headers)
        assert answer.status_code == 401, url
        answer = box.anonymous.get(url, headers={**headers, "X-API-Key": "e2b_" + "0" * 40})
        assert answer.status_code == 401, url
    published = box.publish(8000)
    assert published == {"port": 8000, "url": f"http://{box.host()}:{box.service.url.rpartition(':')[2]}/"}
    for url, headers in asked:
        assert box.anonymous.get(url, headers=headers).json()["path"] == "/x"
    assert box.anonymous.get("/x", headers={"Host": box.host(8006)}).status_code == 401
    box.close(8000)
    for url, headers in asked:
        assert box.anonymous.get(url, headers=headers).status_code == 401


@pytest.mark.parametrize("host", ["8000-{id}.other.test", "08000-{id}.boxes.test", "8000-{id}x.boxes.test", "boxes.test", "8000{id}.boxes.test"])
def test_other_names_lead_nowhere(box: Box, host: str) -> None:
    box.publish(8000)
    answer = box.anonymous.get("/", headers={"Host": host.format(id=box.id)})
    assert answer.status_code == 403
    box.close(8000)


def test_a_name_is_read_without_regard_to_case_and_port(box: Box) -> None:
    answer = box.client.get("/y?z", headers={"Host": box.host().upper() + ":1234"})
    assert answer.json()["path"] == "/y?z"
    assert headers_of(answer.json())["host"] == box.host().upper() + ":1234"


def test_below_a_name_there_is_no_api(box: Box) -> None:
    """Else a page of the sandbox would be a page of the service's own."""
    shown = box.client.get("/v1/sandboxes", headers={"Host": box.host()}).json()
    assert shown["path"] == "/v1/sandboxes"


def test_ports_are_listed(box: Box) -> None:
    box.publish(7777)
    ports = {port["port"]: port for port in box.client.get(box.ports).json()["ports"]}
    assert (ports[8000]["listening"], ports[8000]["published"]) == (True, False)
    assert (ports[8006]["listening"], ports[7777]["listening"], ports[7777]["published"]) == (True, False, True)
    box.close(7777)
    assert box.client.post(box.ports, json={"port": 0}).status_code == 422


@pytest.mark.parametrize("by", ["path", "name"])
def test_a_websocket(box: Box, by: str) -> None:
    url = box.service.url.replace("http", "ws") + (f"{box.ports}/8000/ws" if by == "path" else "/ws")
    headers = dict(box.key) | ({"Host": box.host()} if by == "name" else {})

    async def talk() -> list[Any]:
        host, _, port = box.service.url.removeprefix("http://").partition(":")
        connected = socket.create_connection((host, int(port)))
        connected.setblocking(False)
        target = url if by == "path" else f"ws://{box.host()}:{port}/ws"
        extra = {name: value for name, value in headers.items() if name != "Host"}
        async with websockets.connect(target, extra_headers=extra, sock=connected) as ws:
            out = []
            for message in ("hello", b"\x00\xff\x01"):
                await ws.send(message)
                out.append(await asyncio.wait_for(ws.recv(), 10))
            return out

    assert asyncio.run(talk()) == ["olleh", b"\x01\xff\x00"]


def test_a_client_that_goes_away_is_noticed_inside(box: Box) -> None:
    host, _, port = box.service.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as raw:
        raw.sendall(
            f"GET {box.ports}/8000/ws HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {box.service.key}\r\n"
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Key: {base64.b64encode(b'0' * 16).decode()}\r\n\r\n".encode()
        )
        assert raw.recv(4096).startswith(b"HTTP/1.1 101 ")

    def open_inside() -> int:
        code = "print(sum(':1F40 ' in line and ' 01 ' in line for line in open('/proc/net/tcp')))"  # established
        body = {"argv": ["python3", "-c", code], "wait": True}
        answer = box.client.post(f"/v1/sandboxes/{box.id}/processes", json=body).json()
        return int(answer["stdout"]["text"])

    wait_until(lambda: open_inside() == 0, 10, "the connection is closed inside, too")


def test_many_at_the_same_time(box: Box) -> None:
    failures: list[str] = []

    def ask(number: int) -> None:
        shown = httpx.get(f"{box.service.url}{box.ports}/8000/{number}", headers=box.key, timeout=60)
        if shown.status_code != 200 or shown.json()["path"] != f"/{number}":
            failures.append(shown.text)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_the_agents_own_door_is_no_port(box: Box) -> None:
    """It is a unix socket: no port leads to it, and none of the service's is reachable from a sandbox's loopback."""
    ports = {port["port"] for port in box.client.get(box.ports).json()["ports"]}
    assert ports == {8000, 8006}
    service_port = box.service.url.rpartition(":")[2]
    assert box.client.get(f"{box.ports}/{service_port}/").status_code == 502


def test_of_another_sandbox_nothing_is_reached(box: Box) -> None:
    other = box.client.post("/v1/sandboxes", json={}).json()["id"]
    box.publish(8000)
    assert box.client.get(f"/v1/sandboxes/{other}/ports/8000/").status_code == 502
    assert box.anonymous.get("/", headers={"Host": f"8000-{other}.{DOMAIN}"}).status_code == 401
    box.close(8000)
    assert box.client.delete(f"/v1/sandboxes/{other}").status_code == 204


def test_cloister_port(box: Box, cli: Cli) -> None:
    where = {"CLOISTER_URL": box.service.url, "CLOISTER_API_KEY": box.service.key}
    done = cli("port", box.id, "--publish", "8000", **where)
    assert (done.returncode, done.stdout.strip()) == (0, f"http://{box.host()}:{box.service.url.rpartition(':')[2]}/")
    listed = cli("port", box.id, **where).stdout.splitlines()
    assert [line.split()[:3] for line in listed] == [["8000", "listening", "published"], ["8006", "listening", "-"]]
    assert json.loads(cli("port", box.id, "--json", **where).stdout)["ports"][0]["port"] == 8000
    assert cli("port", box.id, "--close", "8000", **where).returncode == 0
    assert box.anonymous.get(f"{box.ports}/8000/").status_code == 401
    assert cli("port", "a" * 20, **where).returncode == 66


def test_published_ports_and_processes_survive_a_new_server(box: Box) -> None:
    """The last one: it kills the server."""
    box.publish(8000)
    before = box.client.get(f"/v1/sandboxes/{box.id}/processes").json()["processes"]
    body = {"command": "seq 1000; read -r line; echo $line", "stdin_open": True}
    process = box.client.post(f"/v1/sandboxes/{box.id}/processes", json=body).json()["id"]
    box.service.kill("cloisterd")
    assert box.anonymous.get(f"{box.ports}/8000/again").json()["path"] == "/again"
    after = box.client.get(f"/v1/sandboxes/{box.id}/processes").json()["processes"]
    assert [p["id"] for p in before] == [p["id"] for p in after[: len(before)]]
    url = f"/v1/sandboxes/{box.id}/processes/{process}"
    assert box.client.post(f"{url}/stdin", content=b"still\n").status_code == 204
    events = box.client.get(f"{url}/events", headers={"Accept": "application/x-ndjson"}).text.splitlines()
    text = "".join(json.loads(line)["data"].get("text", "") for line in events)
    assert text == "".join(f"{i}\n" for i in range(1, 1001)) + "still\n"
    box.close(8000)
