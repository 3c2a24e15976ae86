"""Hosts that the network tests make themselves, in a network namespace of their own: a DNS server, HTTP, TLS and echoes.

with world(tmp_path) as hosts:
    hosts.names({"a.example": ["198.18.77.10"]})
    hosts.seen()      # what reached them

This file is also the program that serves in the namespace: `net_world.py DIRECTORY`.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import socket
import ssl
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

# Of the networks for benchmarks: nothing real is there, and they are not in the platform deny set.
HERE = "198.18.77.1"
DNS = "198.18.77.53"
ADDRESSES = ["198.18.77.10", "198.18.77.11", "198.18.77.12", "198.18.77.20"]
HERE_V6 = "2001:db8:c1::1"
ADDRESSES_V6 = ["2001:db8:c1::10"]
NAMES = ["a.example", "b.example", "x.a.example", "shared.example", "six.example"]


class Hosts:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ca = directory / "ca.pem"

    def names(self, records: dict[str, list[str]]) -> None:
        """What the DNS server says from now on: addresses, or one name as an alias. `flip:` takes turns."""
        beside = self.directory / "records.new"
        beside.write_text(json.dumps(records))
        beside.replace(self.directory / "records.json")

    def seen(self) -> list[str]:
        """Lines of what came: `dns NAME TYPE`, `http ADDRESS HOST`, `tls ADDRESS SNI`, `tcp ADDRESS`, `udp ADDRESS`, `proxy NAME:PORT`, `socks NAME:PORT`."""
        return (self.directory / "seen").read_text().splitlines()

    def forget(self) -> None:
        (self.directory / "seen").write_text("")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=30)


@contextlib.contextmanager
def world(directory: Path) -> Iterator[Hosts]:
    name = f"cl{os.getpid()}"
    hosts = Hosts(directory)
    _certificates(directory)
    hosts.names({})
    hosts.forget()
    server: subprocess.Popen[str] | None = None
    try:
        _run("ip", "netns", "add", name)
        _run("ip", "link", "add", name, "type", "veth", "peer", "name", "up0", "netns", name)
        _run("ip", "addr", "add", f"{HERE}/24", "dev", name)
        _run("ip", "-6", "addr", "add", f"{HERE_V6}/64", "dev", name, "nodad")
        _run("ip", "link", "set", name, "up")
        inside = ["ip", "-n", name]
        for address in (DNS, *ADDRESSES):
            _run(*inside, "addr", "add", f"{address}/24", "dev", "up0")
        for address in ADDRESSES_V6:
            _run(*inside, "-6", "addr", "add", f"{address}/64", "dev", "up0", "nodad")
        _run(*inside, "link", "set", "lo", "up")
        _run(*inside, "link", "set", "up0", "up")
        command = ["ip", "netns", "exec", name, sys.executable, __file__, str(directory)]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None and server.stdout.readline() == "ready\n"
        yield hosts
    finally:
        if server is not None:
            server.terminate()
            server.wait(10)
        subprocess.run(["ip", "link", "del", name], check=False, capture_output=True, timeout=30)
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True, timeout=30)


def _certificates(directory: Path) -> None:
    names = ",".join(f"DNS:{name}" for name in NAMES)
    _run(
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-keyout", str(directory / "key.pem"), "-out", str(directory / "ca.pem"), "-days", "2"),
        *("-subj", "/CN=hosts of a test", "-addext", f"subjectAltName={names}"),
    )


# --- the program in the namespace ---


class World:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.turns: dict[str, int] = {}

    def note(self, line: str) -> None:
        with (self.directory / "seen").open("a") as seen:
            seen.write(line + "\n")

    def records(self, name: str) -> list[str] | None:
        found = json.loads((self.directory / "records.json").read_text()).get(name)
        if found and found[0] == "flip:":
            turn = self.turns.get(name, 0)
            self.turns[name] = turn + 1
            return [found[1:][turn % (len(found) - 1)]]
        return found


def _name_at(message: bytes) -> tuple[str, int]:
    labels, at = [], 12
    while message[at]:
        labels.append(message[at + 1 : at + 1 + message[at]].decode())
        at += 1 + message[at]
    return ".".join(labels), at + 1


def _wire(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def dns_answer(world: World, message: bytes, most: int) -> bytes:
    name, at = _name_at(message)
    kind = struct.unpack(">H", message[at : at + 2])[0]
    world.note(f"dns {name.lower()} {kind}")
    records = world.records(name.lower())
    answers, count, owner = b"", 0, b"\xc0\x0c"
    while records and not records[0][0].isdigit() and ":" not in records[0]:
        alias = _wire(records[0])
        answers += owner + struct.pack(">HHIH", 5, 1, 0, len(alias)) + alias
        count, owner, records = count + 1, alias, world.records(records[0])
    for text in records or []:
        address = ipaddress.ip_address(text)
        if (1 if address.version == 4 else 28) == kind:
            answers += owner + struct.pack(">HHIH", kind, 1, 0, len(address.packed)) + address.packed
            count += 1
    flags = 0x8180 if records is not None else 0x8183
    if 12 + at + 4 + len(answers) > most:
        flags, answers, count = flags | 0x0200, b"", 0
    return message[:2] + struct.pack(">HHHHH", flags, 1, count, 0, 0) + message[12 : at + 4] + answers


def serve_dns(world: World) -> None:
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind((DNS, 53))

    def datagrams() -> None:
        while True:
            message, peer = udp.recvfrom(4096)
            udp.sendto(dns_answer(world, message, 1232), peer)

    threading.Thread(target=datagrams, daemon=True).start()

    def over_tcp(connection: socket.socket) -> None:
        length = struct.unpack(">H", connection.recv(2))[0]
        answer = dns_answer(world, connection.recv(length), 65535)
        connection.sendall(struct.pack(">H", len(answer)) + answer)

    serve(socket.create_server((DNS, 53)), over_tcp)


def serve(listener: socket.socket, handle: object) -> None:
    def one(connection: socket.socket) -> None:
        with contextlib.suppress(OSError, ssl.SSLError), connection:
            handle(connection)  # type: ignore[operator]

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=one, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def serve_http(world: World, connection: socket.socket) -> None:
    address = connection.getsockname()[0]
    pending = b""
    while True:
        while b"\r\n\r\n" not in pending:
            more = connection.recv(65536)
            if not more:
                return
            pending += more
        head, _, pending = pending.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in lines[1:])
        world.note(f"http {address} {fields.get('host', '')}")
        if fields.get("upgrade"):
            connection.sendall(b"HTTP/1.1 101 Switching\r\nUpgrade: echo\r\nConnection: upgrade\r\n\r\n")
            while data := connection.recv(65536):
                connection.sendall(data)
            return
        body = f"{address} {fields.get('host', '')}".encode()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def serve_tls(world: World, connection: socket.socket) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(world.directory / "ca.pem", world.directory / "key.pem")
    named: list[str] = []
    context.sni_callback = lambda _socket, name, _context: named.append(name or "-")  # type: ignore[assignment]
    address = connection.getsockname()[0]
    secured = context.wrap_socket(connection, server_side=True)
    world.note(f"tls {address} {named[0] if named else '-'}")
    serve_http(world, secured)


def serve_proxy(world: World, connection: socket.socket) -> None:
    """An HTTP proxy, or a SOCKS5 one: it notes what it was asked for, and serves that itself."""
    first = connection.recv(65536)
    if first[:1] == b"\x05":
        connection.sendall(b"\x05\x00")
        asked = connection.recv(65536)
        name = asked[5 : 5 + asked[4]].decode() if asked[3] == 3 else str(ipaddress.ip_address(asked[4:-2]))
        world.note(f"socks {name}:{struct.unpack('>H', asked[-2:])[0]}")
        connection.sendall(b"\x05\x00\x00\x01\0\0\0\0\0\0")
    else:
        world.note(f"proxy {first.split()[1].decode()}")
        connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
    serve_http(world, connection)


def serve_echo(world: World, connection: socket.socket) -> None:
    world.note(f"tcp {connection.getsockname()[0]}")
    while data := connection.recv(1 << 20):
        connection.sendall(data)


def serve_banner(world: World, connection: socket.socket) -> None:
    """A server that speaks first."""
    world.note(f"banner {connection.getsockname()[0]}")
    connection.sendall(b"hello, who is there?\n")
    connection.sendall(b"you said " + connection.recv(100))


def main(directory: str) -> None:
    world = World(Path(directory))
    serve_dns(world)
    for address in (*ADDRESSES, *ADDRESSES_V6):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        for port, handle in ((80, serve_http), (443, serve_tls), (7, serve_echo), (25, serve_echo), (22, serve_banner), (3128, serve_proxy)):
            listener = socket.create_server((address, port), family=family)
            serve(listener, lambda connection, handle=handle: handle(world, connection))
        udp = socket.socket(family, socket.SOCK_DGRAM)
        udp.bind((address, 7))

        def echo(udp: socket.socket = udp, address: str = address) -> None:
            while True:
                data, peer = udp.recvfrom(65536)
                world.note(f"udp {address}")
                udp.sendto(data, peer)

        threading.Thread(target=echo, daemon=True).start()
    print("ready", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1])
