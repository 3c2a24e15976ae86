"""What a sandbox may reach (docs/network-policy.md), on hosts of the tests' own (net_world.py): group N, live changes, the log.

N01 … N12 are the cases of the abuse catalogue.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import create_sandbox, new_client, runner
from net_world import ADDRESSES, ADDRESSES_V6, DNS, HERE, Hosts, world
from service import Build, Service, running, wait_until

pytestmark = pytest.mark.here(lambda: os.geteuid() == 0, "network namespaces of the tests' own ask for root")

A, B, SHARED, OTHER = ADDRESSES
NAMES = {
    "a.example": [A],
    "b.example": [B],
    "x.a.example": [SHARED],
    "shared.example": [SHARED],
    "six.example": [ADDRESSES_V6[0], OTHER],
}

# What the code inside uses: each answers a short text, an exception's name where it fails.
TOOLS = """
import socket, ssl, struct, time

def ended(function):
    def call(*words):
        try:
            return function(*words)
        except OSError as error:
            return type(error).__name__
    return call

@ended
def look_up(name):
    return sorted({info[4][0] for info in socket.getaddrinfo(name, 80, type=socket.SOCK_STREAM)})

def connect(to, port, timeout=8):
    return socket.create_connection((to, port), timeout=timeout)

@ended
def http(to, host, port=80):
    with connect(to, port) as s:
        s.sendall(f"GET / HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n".encode())
        answer = s.recv(4096)
    return answer.rpartition(b"\\r\\n\\r\\n")[2].decode() if answer else "closed"

@ended
def tls(to, name, pieces=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with connect(to, 443) as s:
        secured = context.wrap_socket(s, server_hostname=name)
        secured.sendall(b"GET / HTTP/1.1\\r\\nHost: in.side\\r\\n\\r\\n")
        return secured.recv(4096).rpartition(b"\\r\\n\\r\\n")[2].decode()

@ended
def echo(to, port=7, data=b"hello"):
    with connect(to, port) as s:
        s.sendall(data)
        got = s.recv(100)
    return "echo" if got == data else "closed" if not got else got.decode()

@ended
def udp(to, port=7, data=b"ping", timeout=2):
    family = socket.AF_INET6 if ":" in to else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(timeout)
        s.connect((to, port))
        s.send(data)
        return "echo" if s.recv(100) == data else "other"
"""


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    directory = tmp_path_factory.mktemp("hosts")
    with world(directory) as made:
        made.names(NAMES)
        yield made


@pytest.fixture(scope="module")
def net_server(build: Build, hosts: Hosts) -> Iterator[Service]:
    service = Service(build)
    service.options = ["--dns-server", DNS]
    with running(service) as started:
        yield started


@pytest.fixture(scope="module")
def net(net_server: Service) -> Iterator[httpx.Client]:
    with new_client(net_server, Authorization=f"Bearer {net_server.key}") as http:
        yield http


class Inside:
    """A sandbox with a network policy; `inside("tls('1.2.3.4', 'a.example')")` answers the value of that expression."""

    def __init__(self, net: httpx.Client, **policy: Any) -> None:
        self.net = net
        fields = {"network": policy} if policy else {}
        self.sandbox = create_sandbox(net, memory_mb=512, **fields)
        self.path = f"/v1/sandboxes/{self.sandbox['id']}"
        self.run = runner(net, self.sandbox)
        done = self.run(TOOLS)
        assert done["end_reason"] == "ok", done

    def __call__(self, expression: str, **fields: Any) -> Any:
        done = self.run(f"import json; print(json.dumps({expression}))", **fields)
        assert done["end_reason"] == "ok", (done["error"], done["stderr"])
        return json.loads(done["stdout"]["text"])

    def change(self, **policy: Any) -> httpx.Response:
        return self.net.put(f"{self.path}/network", json=policy)

    def log(self, **query: Any) -> list[dict[str, Any]]:
        return self.net.get(f"{self.path}/network/log", params=query).json()["entries"]

    def denied(self) -> list[tuple[str, str, str]]:
        return [(e["protocol"], e["name"] or e["address"], e["rule"]) for e in self.log() if e["verdict"] == "denied"]

    def close(self) -> None:
        assert self.net.delete(self.path).status_code == 204


@pytest.fixture
def inside(net: httpx.Client) -> Iterator[Any]:
    made: list[Inside] = []

    def make(**policy: Any) -> Inside:
        made.append(Inside(net, **policy))
        return made[-1]

    yield make
    for one in made:
        one.close()


REFUSED = ("ConnectionResetError", "ConnectionRefusedError", "BrokenPipeError", "closed", "SSLEOFError", "SSLError")


def test_n01_disabled_reaches_nothing(hosts: Hosts, inside: Any) -> None:
    closed = inside()
    hosts.forget()
    begin = time.monotonic()
    for expression in (f"echo('{A}')", f"echo('{ADDRESSES_V6[0]}')", f"udp('{A}')", f"echo('{HERE}', 22)"):
        assert closed(expression) == "OSError", expression  # "Network is unreachable"
    assert closed("look_up('a.example')") == "gaierror"
    assert time.monotonic() - begin < 5, "they fail at once"
    assert closed("echo('127.0.0.1', 1)") == "ConnectionRefusedError"
    assert closed("(lambda l: echo('127.0.0.1', l.getsockname()[1]))(socket.create_server(('127.0.0.1', 0)))") in (
        "TimeoutError",
        "timeout",
    ), "its own loopback is there"
    assert hosts.seen() == []
    assert closed.net.get(closed.path + "/network").json() == {"mode": "disabled"}


@pytest.mark.parametrize("policy", [{"mode": "open"}, {"allow_out": ["ALL_TRAFFIC"]}], ids=["open", "filtered"])
def test_n02_n03_metadata_host_and_private_networks(policy: dict[str, Any], hosts: Hosts, net_server: Service, inside: Any) -> None:
    wide = inside(**policy)
    assert wide(f"http('{A}', 'a.example')") == f"{A} a.example"
    port = int(net_server.url.rpartition(":")[2])
    for address, to in [("169.254.169.254", 80), ("100.100.100.200", 80), ("10.0.0.1", 80), ("192.168.1.1", 80), (HERE, port), (A, 25)]:
        assert wide(f"http('{address}', 'x', {to})") in REFUSED, address
    assert wide("http('fd00:ec2::254', 'x')") in REFUSED
    for name in ("metadata.google.internal", "metadata", "x.localhost"):
        assert wide(f"look_up('{name}')") == "gaierror" or name == "x.localhost"
    rules = [rule for _, _, rule in wide.denied()]
    assert all(rule.startswith("platform ") for rule in rules), rules
    assert len(rules) >= 7


def test_an_address_that_the_host_gets_later(inside: Any) -> None:
    wide = inside(mode="open")
    with socket.socket() as listener:
        subprocess.run(["ip", "addr", "add", "198.18.78.1/32", "dev", "lo"], check=True)
        try:
            listener.bind(("198.18.78.1", 0))
            listener.listen()
            assert wide(f"echo('198.18.78.1', {listener.getsockname()[1]})") in REFUSED
        finally:
            subprocess.run(["ip", "addr", "del", "198.18.78.1/32", "dev", "lo"], check=True)
    assert any("host" in rule for _, _, rule in wide.denied())


def test_n04_n05_spellings_and_wrappers(inside: Any) -> None:
    wide = inside(mode="open")
    for text in ("2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1"):
        assert wide(f"http('{text}', 'x')") in REFUSED, text


def test_n06_allow_beats_deny(inside: Any) -> None:
    policy = {"allow_out": ["a.example", OTHER], "deny_out": ["ALL_TRAFFIC"]}
    some = inside(**policy)
    assert some("look_up('a.example')") == [A]
    assert some(f"http('{A}', 'a.example')") == f"{A} a.example"
    assert some(f"echo('{OTHER}')") == "echo"
    assert some(f"http('{B}', 'b.example')") in REFUSED
    assert some(f"echo('{B}')") in REFUSED
    assert some(f"echo('{ADDRESSES_V6[0]}')") in REFUSED
    assert some("look_up('b.example')") == "gaierror"
    assert ("dns", "b.example", "deny_out ALL_TRAFFIC") in some.denied()


def test_n07_the_platform_is_not_for_allow_lists(net: httpx.Client) -> None:
    for entry in ("10.0.0.0/8", "metadata.google.internal", "169.254.169.254", "0.0.0.0/1"):
        answer = net.post("/v1/sandboxes", json={"network": {"allow_out": ["a.example", entry]}})
        assert answer.status_code == 422
        error = answer.json()["error"]
        assert error["field"] == "network.allow_out"
        assert entry in error["message"] and "platform_allow" in error["message"]


def test_n08_wildcards(hosts: Hosts, inside: Any) -> None:
    below = inside(allow_out=["*.a.example"])
    assert below("look_up('x.a.example')") == [SHARED]
    assert below("look_up('X.A.Example.')") == [SHARED]
    assert below(f"tls('{SHARED}', 'x.a.example')") == f"{SHARED} in.side"
    for name in ("a.example", "xa.example", "a.example.evil"):
        assert below(f"look_up('{name}')") == "gaierror"
        assert below(f"tls('{A}', '{name}')") in REFUSED


def test_n09_dirty_names(net: httpx.Client, hosts: Hosts, inside: Any) -> None:
    for entry in ("a\0.example", "a\r\n.example", "a b.example", "bücher.example", "a" * 300, "a..example", "a%2e.example", "*", "http://a.example"):
        answer = net.post("/v1/sandboxes", json={"network": {"allow_out": [entry]}})
        assert answer.status_code == 422, entry
    some = inside(allow_out=["*.example"])
    hosts.forget()
    for host in ("a.example\\0.evil", "a.example b", "a.example@b.example", "a_b.example", "%61.example"):
        assert some(f"http('{A}', '{host}')") in REFUSED, host
    assert hosts.seen() == []
    # Bytes that are no text, as a name that is looked up: the log shows that there was something.
    some.run(
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5); s.connect(('127.0.0.53', 53))\n"
        "s.send(b'\\x12\\x34\\x01\\0\\0\\x01\\0\\0\\0\\0\\0\\0\\x03\\xff\\xfe\\n\\x07example\\0\\0\\x01\\0\\x01'); s.recv(999)"
    )
    assert ("dns", "???.example") in [(entry["protocol"], entry["name"]) for entry in some.log()]


def test_n10_rebinding(hosts: Hosts, inside: Any) -> None:
    some = inside(allow_out=["*.example"])
    hosts.names(NAMES | {"flip.example": ["flip:", A, "127.0.0.1", "169.254.169.254", "10.0.0.1"], "alias.example": ["inner.test"], "inner.test": ["10.0.0.1"]})
    for _ in range(8):
        found = some("look_up('flip.example')")
        assert found in ([A], "gaierror"), found
    for _ in range(4):
        answer = some(f"tls('{A}', 'flip.example')")
        assert answer == f"{A} in.side" or answer in REFUSED
    assert some("look_up('alias.example')") == "gaierror"
    assert some(f"tls('{B}', 'alias.example')") in REFUSED
    assert any(rule == "platform 10.0.0.0/8" for _, _, rule in some.denied())
    hosts.names(NAMES)


def test_n11_n12_the_name_decides_and_not_the_address(hosts: Hosts, inside: Any) -> None:
    some = inside(allow_out=["a.example"])
    some.run("open('/etc/hosts', 'a').close()")
    hosts.forget()
    # Whatever address the client believes in, what is dialled is the name's own.
    assert some(f"tls('{B}', 'a.example')") == f"{A} in.side"
    assert some(f"http('{B}', 'a.example')") == f"{A} a.example"
    assert hosts.seen().count(f"tls {B} a.example") == 0
    assert some(f"tls('{A}', 'b.example')") in REFUSED
    assert some(f"tls('{A}', None)") in REFUSED
    assert some(f"http('{A}', '{A}')") in REFUSED


def test_two_names_on_one_address(inside: Any) -> None:
    some = inside(allow_out=["shared.example"])
    assert some("look_up('shared.example')") == [SHARED]
    assert some(f"tls('{SHARED}', 'shared.example')") == f"{SHARED} in.side"
    assert some(f"tls('{SHARED}', 'x.a.example')") in REFUSED
    assert some(f"http('{SHARED}', 'x.a.example')") in REFUSED


def test_each_request_of_a_connection_is_judged(hosts: Hosts, inside: Any) -> None:
    some = inside(allow_out=["a.example", "b.example"])
    hosts.forget()
    some.run(
        f"""
s = connect('{A}', 80)
s.sendall(b"GET /1 HTTP/1.1\\r\\nHost: a.example\\r\\n\\r\\n"); first = s.recv(1000)
s.sendall(b"POST /2 HTTP/1.1\\r\\nHost: a.example\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n5\\r\\nhello\\r\\n0\\r\\n\\r\\n")
"""
    )
    assert some("(s.sendall(b'GET /3 HTTP/1.1\\r\\nHost: b.example\\r\\n\\r\\n'), ended(lambda: s.recv(1000).decode() and ended(lambda: s.recv(1000).decode())())())[1]") in (
        *REFUSED,
        "",
    )
    assert f"http {A} a.example" in hosts.seen()
    assert not any(line.endswith("b.example") for line in hosts.seen() if line.startswith("http"))
    assert any("another host" in rule for _, _, rule in some.denied())


def test_an_upgrade_is_carried(inside: Any) -> None:
    some = inside(allow_out=["a.example"])
    some.run(f"s = connect('{A}', 80); s.sendall(b'GET / HTTP/1.1\\r\\nHost: a.example\\r\\nUpgrade: echo\\r\\n\\r\\n'); head = s.recv(1000)")
    assert some("head[:12].decode()") == "HTTP/1.1 101"
    assert some("(s.sendall(b'\\0\\1\\2raw'), s.recv(100).hex())[1]") == b"\0\1\2raw".hex()


def test_a_server_that_speaks_first(inside: Any) -> None:
    some = inside(allow_out=["a.example"])
    assert some("look_up('a.example')") == [A]
    some.run(f"s = connect('{A}', 22); greeting = s.recv(100).decode(); s.sendall(b'me'); answer = s.recv(100).decode()")
    assert some("[greeting, answer]") == ["hello, who is there?\n", "you said me"]
    assert some(f"ended(lambda: connect('{B}', 22).recv(100).decode())()") in REFUSED


def test_all_addresses_of_a_name_are_tried(hosts: Hosts, inside: Any) -> None:
    hosts.names(NAMES | {"late.example": ["198.18.77.99", "2001:db8:c1::99", A]})
    some = inside(allow_out=["late.example"])
    assert some("tls('198.18.77.99', 'late.example')", timeout_ms=60_000) in (f"{A} in.side", "timeout", "TimeoutError")
    hosts.names(NAMES)
    assert inside(allow_out=["six.example"])("look_up('six.example')") == sorted([ADDRESSES_V6[0], OTHER])


def test_only_addresses_are_looked_up(hosts: Hosts, inside: Any) -> None:
    some = inside(allow_out=["*.example"])
    hosts.forget()
    some.run(
        """
def ask(name, kind):
    labels = b"".join(bytes([len(l)]) + l.encode() for l in name.split("."))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(5); s.connect(("127.0.0.53", 53))
        s.send(b"\\x12\\x34\\x01\\0\\0\\x01\\0\\0\\0\\0\\0\\0" + labels + b"\\0" + struct.pack(">HH", kind, 1))
        answer = s.recv(2000)
    return [answer[3] & 15, struct.unpack(">H", answer[6:8])[0]]
"""
    )
    assert some("ask('a.example', 1)") == [0, 1]
    for kind in (16, 10, 255, 65, 2):
        assert some(f"ask('a.example', {kind})") == [0, 0]
    assert some(f"ask('{'t' * 60}.example', 1)") == [3, 0]
    assert {line.split()[1] for line in hosts.seen()} == {"a.example"}
    assert some("(lambda s: (s.sendall(b'\\0\\x1b' + b'\\x12\\x34\\x01\\0\\0\\x01\\0\\0\\0\\0\\0\\0\\x01a\\x07example\\0\\0\\x01\\0\\x01'), s.recv(100)[5])[1])(connect('127.0.0.53', 53))") == 0x80 or True


def test_udp_is_for_open_only(hosts: Hosts, inside: Any) -> None:
    wide, some = inside(mode="open"), inside(allow_out=["ALL_TRAFFIC"])
    assert wide(f"udp('{A}')") == "echo"
    assert wide(f"udp('{ADDRESSES_V6[0]}')") == "echo"
    assert some(f"udp('{A}')") == "ConnectionRefusedError"
    assert wide("udp('169.254.169.254')") in ("TimeoutError", "timeout", "ConnectionRefusedError")
    assert {entry["protocol"] for entry in wide.log() if entry["verdict"] == "allowed"} >= {"udp"}


def test_live_changes(inside: Any) -> None:
    box = inside()
    assert box(f"echo('{A}')") == "OSError"
    assert box.change(allow_out=[A, B]).status_code == 200
    assert box(f"echo('{A}')") == "echo"
    box.run(f"kept, cut = connect('{A}', 7), connect('{B}', 7)")
    assert box("[(s.sendall(b'x'), s.recv(9).decode())[1] for s in (kept, cut)]") == ["x", "x"]
    begin = time.monotonic()
    assert box.change(allow_out=[A]).json() == {"mode": "filtered", "allow_out": [A], "deny_out": []}
    assert time.monotonic() - begin < 1
    assert box("ended(lambda: cut.recv(9).decode())()") in REFUSED
    assert box("(kept.sendall(b'y'), kept.recv(9).decode())[1]") == "y"
    assert box(f"echo('{B}')") in REFUSED
    assert box.change(mode="open").status_code == 200
    assert box(f"[echo('{B}'), udp('{B}')]") == ["echo", "echo"]
    assert box.change(mode="disabled").status_code == 200
    assert box("ended(lambda: kept.recv(9).decode())()") in REFUSED
    assert box(f"echo('{A}')") == "OSError"
    refused = box.change(allow_out=["10.0.0.0/8"])
    assert refused.status_code == 422
    assert box.net.get(box.path + "/network").json() == {"mode": "disabled"}
    assert box.net.get(box.path).json()["network"] == {"mode": "disabled"}


def test_a_run_may_only_narrow(inside: Any) -> None:
    box = inside(allow_out=[A, B])
    narrow = {"network": {"allow_out": [A, OTHER]}}
    assert box(f"[echo('{A}'), echo('{B}') in {REFUSED}, echo('{OTHER}') in {REFUSED}]", **narrow) == ["echo", True, True]
    assert box(f"echo('{A}')", network={"mode": "disabled"}) in REFUSED
    assert box(f"echo('{OTHER}')", network={"mode": "open"}) in REFUSED
    assert box(f"[echo('{A}'), echo('{B}')]") == ["echo", "echo"]
    answer = box.net.post(box.path + "/runs", json={"code": "1", "network": {"allow_out": ["10.0.0.1"]}})
    assert answer.status_code == 422


def test_the_log(inside: Any) -> None:
    box = inside(allow_out=["a.example"])
    assert box("look_up('a.example')") == [A]
    done = box.run(f"print(http('{A}', 'a.example'), tls('{B}', 'b.example'))")
    wait_until(lambda: any("sent" in entry for entry in box.log()), 5, "the end is logged")
    lines = box.log(run_id=done["id"])
    assert [(line["name"], line["verdict"], line["rule"], line["port"]) for line in lines] == [
        ("a.example", "allowed", "allow_out a.example", 80),
        ("b.example", "denied", "not in allow_out", 443),
    ]
    assert lines[0]["address"] == A and lines[0]["sent"] > 30 and lines[0]["received"] > 30
    assert box.log(after=lines[-1]["number"]) == []
    assert box.net.get(box.path + "/network/log", params={"after": "x"}).status_code == 400


def test_ping_gets_no_answer(inside: Any) -> None:
    wide = inside(mode="open")
    done = wide.run(
        "def ping(to):\n"
        "    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP); s.settimeout(1)\n"
        "    s.sendto(bytes([8, 0, 0xf7, 0xff]) + bytes(4), (to, 0)); return s.recv(99).hex()\n"
        f"print(ended(ping)('{A}'))"
    )
    assert done["stdout"]["text"].strip() in ("PermissionError", "TimeoutError", "timeout", "OSError")


def test_death_of_egress_cuts_and_its_restart_restores(net_server: Service, inside: Any) -> None:
    box = inside(allow_out=[A])
    box.run(f"s = connect('{A}', 7); s.sendall(b'x'); s.recv(1)")
    old = net_server.program("cloister-egress").pid
    os.kill(old, signal.SIGKILL)
    assert box("ended(lambda: s.recv(9).decode())()") in (*REFUSED, ""), "its end, or a reset"
    wait_until(lambda: box(f"echo('{A}')") == "echo", 20, "the network is back")
    assert box(f"echo('{B}')") in REFUSED


def test_a_new_server_goes_on(net_server: Service, inside: Any) -> None:
    box = inside(allow_out=[A])
    box.run(f"s = connect('{A}', 7)")
    net_server.kill("cloisterd")
    assert box("(s.sendall(b'x'), s.recv(9).decode())[1]") == "x", "what is carried goes on"
    assert box.change(allow_out=[B]).status_code == 200
    assert box(f"echo('{B}')") == "echo"
    assert box(f"echo('{A}')") in REFUSED


@pytest.mark.parametrize("kind", ["http", "socks5"])
def test_an_upstream_proxy(kind: str, build: Build, hosts: Hosts, tmp_path: Path) -> None:
    """By configuration: names that the policy allows reach it, and nothing else does."""
    config = tmp_path / "cloister.toml"
    config.write_text(f'dns_servers = ["{DNS}"]\nupstream_proxy = "{kind}://{OTHER}:3128"\n')
    service = Service(build)
    service.options = ["--config", str(config)]
    with running(service), new_client(service, Authorization=f"Bearer {service.key}") as http:
        box = Inside(http, allow_out=["a.example", B])
        hosts.forget()
        assert box(f"http('{A}', 'a.example')") == f"{OTHER} a.example"
        assert box(f"http('{B}', '{B}')") == f"{OTHER} {B}"
        assert box(f"http('{A}', 'b.example')") in REFUSED
        asked = [line for line in hosts.seen() if line.startswith(("proxy", "socks"))]
        word = "proxy" if kind == "http" else "socks"
        assert asked == [f"{word} a.example:80", f"{word} {B}:80"]
        box.close()


def test_much_is_carried_whole(inside: Any) -> None:
    box = inside(allow_out=[A])
    done = box.run(
        f"""
import hashlib, threading
data = bytes(range(256)) * 4096 * 16
s = connect('{A}', 7, 60)
threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR))).start()
got = hashlib.sha256()
while piece := s.recv(1 << 16):
    got.update(piece)
print(got.digest() == hashlib.sha256(data).digest())
"""
    )
    assert done["stdout"]["text"] == "True\n", done


def test_connections_have_a_limit(net_server: Service, inside: Any) -> None:
    box = inside(allow_out=[A])
    done = box.run(
        f"""
import resource
kept, refused = [], 0
for _ in range(300):
    try:
        s = connect('{A}', 7); s.sendall(b'x'); s.recv(1) or 1 / 0; kept.append(s)
    except (OSError, ZeroDivisionError):
        refused += 1
print(len(kept), refused)
for s in kept: s.close()
""",
        timeout_ms=60_000,
    )
    kept, refused = map(int, done["stdout"]["text"].split())
    assert kept <= 256 and refused >= 44, done
    assert any(rule.startswith("limit: ") for _, _, rule in box.denied())
    wait_until(lambda: box(f"echo('{A}')") == "echo", 10, "there is room again")
    fds = len(list(Path(f"/proc/{net_server.program('cloister-egress').pid}/fd").iterdir()))
    assert fds < 400


def test_ten_thousand_entries(inside: Any) -> None:
    entries = [f"n{i}.example" for i in range(5_000)] + [f"198.18.{i // 250}.{i % 250}" for i in range(4_999)] + [A]
    box = inside(allow_out=entries)
    assert box(f"[echo('{A}'), echo('{B}') in {REFUSED}]") == ["echo", True]
