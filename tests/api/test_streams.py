"""Streams of a run's events in their three forms, and the output of a run by range."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import websockets
from conftest import Run, create_sandbox
from service import Service, wait_until
from sse import Event, read_events, text_of
from streams import HEARTBEAT, event_of, read_lines

LINES = {"Accept": "application/x-ndjson"}
EVENTS = {"Accept": "text/event-stream"}


class Box:
    """Runs in one sandbox, and the three ways to read what they do."""

    def __init__(self, client: httpx.Client, server: Service) -> None:
        self.client, self.server = client, server
        self.id: str = create_sandbox(client)["id"]

    @property
    def runs(self) -> str:
        return f"/v1/sandboxes/{self.id}/runs"

    def start(self, code: str, **fields: Any) -> str:
        answer = self.client.post(self.runs, json={"code": code, "wait": False, **fields})
        assert answer.status_code == 202, answer.text
        return answer.json()["id"]

    def get(self, run_id: str) -> dict[str, Any]:
        return self.client.get(f"/v1/runs/{run_id}").json()

    def end_of(self, run_id: str) -> dict[str, Any]:
        wait_until(lambda: self.get(run_id)["state"] == "ended", 60, "the run has ended")
        return self.get(run_id)

    def started(self, run_id: str) -> None:
        wait_until(lambda: self.get(run_id)["state"] == "running", 60, "the run is running")

    def sse(self, run_id: str, after: int = 0) -> list[Event]:
        with self.client.stream("GET", f"/v1/runs/{run_id}/events", params={"after": after}, headers=EVENTS) as answer:
            return list(read_events(answer.iter_bytes()))

    def lines(self, run_id: str, after: int = 0) -> list[Event]:
        with self.client.stream("GET", f"/v1/runs/{run_id}/events", params={"after": after}, headers=LINES) as answer:
            assert answer.headers["content-type"] == "application/x-ndjson"
            return list(read_lines(answer.iter_lines()))

    def socket(self, run_id: str, after: int = 0) -> list[Event]:
        return asyncio.run(self._socket(run_id, after))

    async def _socket(self, run_id: str, after: int) -> list[Event]:
        async with self.connect(run_id, after) as connection:
            events = [event_of(message) async for message in connection]
            assert connection.close_code == 1000
            return events

    def connect(self, run_id: str, after: int = 0) -> Any:
        url = f"{self.server.url.replace('http', 'ws', 1)}/v1/runs/{run_id}/events?after={after}"
        return websockets.connect(url, extra_headers={"Authorization": f"Bearer {self.server.key}"}, max_size=None)

    def output(self, run_id: str, stream: str = "all", **headers: str) -> httpx.Response:
        return self.client.get(f"/v1/runs/{run_id}/output", params={"stream": stream}, headers=headers)


@pytest.fixture(scope="module")
def box(client: httpx.Client, server: Service) -> Iterator[Box]:
    made = Box(client, server)
    yield made
    client.delete(f"/v1/sandboxes/{made.id}")


def numbered(events: list[Event], first: int = 1) -> bool:
    return [event.id for event in events] == list(range(first, first + len(events)))


# --- Three forms ---

MIXED = """
import sys
from IPython.display import display, HTML
print("one"); print("two", file=sys.stderr); display(HTML("<b>three</b>")); print("four")
5
"""


def test_the_three_forms_tell_the_same(box: Box) -> None:
    run_id = box.start(MIXED)
    events = box.sse(run_id)
    assert [event.type for event in events] == ["started", "stdout", "stderr", "display", "stdout", "result", "ended"]
    assert numbered(events)
    assert box.lines(run_id) == events
    assert box.socket(run_id) == events


@pytest.mark.parametrize("form", ["sse", "lines", "socket"])
def test_each_goes_on_behind_an_event(box: Box, form: str) -> None:
    run_id = box.start(MIXED)
    whole = box.sse(run_id)
    read = getattr(box, form)
    assert read(run_id, after=3) == whole[3:]
    assert read(run_id, after=len(whole) - 1) == whole[-1:]


def test_a_new_run_is_streamed_as_lines(box: Box) -> None:
    with box.client.stream("POST", box.runs, json={"code": "print('hi')"}, headers=LINES) as answer:
        assert answer.headers["content-type"] == "application/x-ndjson"
        events = list(read_lines(answer.iter_lines()))
    assert numbered(events) and events[-1].data["end_reason"] == "ok"
    assert text_of(events, "stdout") == "hi\n"


def test_events_leave_as_soon_as_they_are_written(box: Box) -> None:
    code = "import time\nfor i in range(3): print(i, flush=True); time.sleep(0.7)"
    begin = time.monotonic()
    times = []
    with box.client.stream("POST", box.runs, json={"code": code}, headers=LINES) as answer:
        for event in read_lines(answer.iter_lines()):
            if event.type == "stdout":
                times.append(time.monotonic() - begin)
    assert len(times) == 3 and times[2] - times[0] > 1.0, times


# --- WebSocket: what a client may not do ---


class RawSocket:
    """A WebSocket by hand. `rest()` answers pings with nothing."""

    HANDSHAKE = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(b"0123456789abcdef").decode(),
    }

    def __init__(self, box: Box, run_id: str, **changed: str) -> None:
        host, port = box.server.url.removeprefix("http://").split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        headers = self.HANDSHAKE | {"Authorization": f"Bearer {box.server.key}", "Host": host} | changed
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.socket.sendall(f"GET /v1/runs/{run_id}/events HTTP/1.1\r\n{lines}\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.socket.recv(1)
        self.status = int(head.split()[1])

    def send(self, first: int, payload: bytes, length: bytes | None = None) -> None:
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))
        self.socket.sendall(bytes([first]) + (length or bytes([0x80 | len(payload)])) + mask + masked)

    def rest(self) -> bytes:
        got = b""
        while piece := self.socket.recv(65536):
            got += piece
        return got

    def close_code(self) -> int:
        """That of the last frame, which has to be Close."""
        got = self.rest()
        at = got.rindex(b"\x88")
        return int(struct.unpack(">H", got[at + 2 : at + 4])[0])


@pytest.fixture(scope="module")
def waiting(box: Box) -> Iterator[str]:
    """A run of another sandbox that waits until its tests are over."""
    other = Box(box.client, box.server)
    run_id = other.start("import time; time.sleep(200)")
    other.started(run_id)
    yield run_id
    box.client.delete(f"/v1/sandboxes/{other.id}")


def test_silence_has_signs_of_life_in_each_form(box: Box, waiting: str) -> None:
    """A comment, a line and a Ping, while nothing happens for longer than 15 s."""
    seen: set[str] = set()

    def read(form: str, headers: dict[str, str], sign: str) -> None:
        with box.client.stream("GET", f"/v1/runs/{waiting}/events", headers=headers) as answer:
            if any(line.rstrip("\n") == sign for line in answer.iter_lines()):
                seen.add(form)

    def read_socket() -> None:
        raw, got = RawSocket(box, waiting), b""
        while not got.endswith(b"\x89\x00"):
            got += raw.socket.recv(65536) or pytest.fail("the socket was closed")
        seen.add("socket")

    threads = [
        threading.Thread(target=read, args=("lines", LINES, json.dumps(HEARTBEAT, separators=(",", ":")))),
        threading.Thread(target=read, args=("sse", EVENTS, ": the run goes on")),
        threading.Thread(target=read_socket),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert seen == {"lines", "sse", "socket"}


BAD_FRAMES = {
    "no mask": (b"\x81\x02hi", 1002),
    "a reserved bit": (b"\xc1\x80\0\0\0\0", 1002),
    "a reserved opcode": (b"\x83\x80\0\0\0\0", 1002),
    "a long ping": (b"\x89\xfe\x00\x7e\0\0\0\0" + bytes(126), 1002),
    "a ping in fragments": (b"\x09\x80\0\0\0\0", 1002),
    "nothing to go on with": (b"\x80\x80\0\0\0\0", 1002),
    "not the shortest length": (b"\x82\xfe\x00\x05\0\0\0\0", 1002),
    "a message of 2^63 bytes": (b"\x82\xff\x7f" + b"\xff" * 7 + bytes(4), 1009),
    "text that is not UTF-8": (b"\x81\x81\0\0\0\0\xff", 1007),
    "half a close code": (b"\x88\x81\0\0\0\0\x03", 1002),
    "a close code that does not exist": (b"\x88\x82\0\0\0\0\x03\xed", 1002),
    "a message, of which there are none here": (b"\x81\x82\0\0\0\0hi", 1008),
}


@pytest.mark.parametrize("what", BAD_FRAMES)
def test_a_bad_frame_closes_with_its_code(box: Box, waiting: str, what: str) -> None:
    frame, code = BAD_FRAMES[what]
    raw = RawSocket(box, waiting)
    assert raw.status == 101
    raw.socket.sendall(frame)
    assert raw.close_code() == code
    assert box.get(waiting)["state"] == "running"


def test_a_ping_is_answered_and_close_is_echoed(box: Box, waiting: str) -> None:
    raw = RawSocket(box, waiting)
    raw.send(0x89, b"are you there")
    raw.send(0x88, struct.pack(">H", 1000))
    got = raw.rest()
    assert b"\x8a\x0dare you there" in got and got.endswith(b"\x88\x02" + struct.pack(">H", 1000))


@pytest.mark.parametrize(
    "changed", [{"Sec-WebSocket-Version": "8"}, {"Sec-WebSocket-Key": "short"}, {"Connection": "keep-alive"}]
)
def test_a_bad_handshake_is_an_error(box: Box, waiting: str, changed: dict[str, str]) -> None:
    assert RawSocket(box, waiting, **changed).status == 400


def test_a_websocket_needs_a_key_and_a_run(box: Box, waiting: str) -> None:
    assert RawSocket(box, waiting, Authorization="Bearer none").status == 401
    assert RawSocket(box, "a" * 20).status == 404


# --- Clients that vanish ---


@pytest.mark.parametrize("form", [EVENTS, LINES], ids=["sse", "lines"])
@pytest.mark.parametrize(("asked", "reason"), [({}, "ok"), ({"on_disconnect": "interrupt"}, "interrupted")])
def test_a_client_that_vanishes(box: Box, form: dict[str, str], asked: dict[str, str], reason: str) -> None:
    code = "import time\nprint('begun', flush=True)\ntime.sleep(2)\nprint('done')"
    with box.client.stream("POST", box.runs, json={"code": code} | asked, headers=form) as answer:
        read = read_events(answer.iter_bytes()) if form is EVENTS else read_lines(answer.iter_lines())
        run_id = next(read).data["run"]["id"]
        assert next(read).data["text"] == "begun\n"
    done = box.end_of(run_id)
    assert done["end_reason"] == reason
    assert done["stdout"]["text"] == ("begun\ndone\n" if reason == "ok" else "begun\n")


def test_a_websocket_that_vanishes_and_another_that_goes_on(box: Box) -> None:
    run_id = box.start("import time\nfor i in range(20): print(i, flush=True); time.sleep(0.1)")

    async def first_three() -> list[Event]:
        connection = await box.connect(run_id)
        events = [event_of(await connection.recv()) for _ in range(3)]
        connection.transport.abort()
        return events

    begun = asyncio.run(first_three())
    rest = box.socket(run_id, after=begun[-1].id)
    assert numbered([*begun, *rest])
    assert text_of([*begun, *rest], "stdout") == "".join(f"{i}\n" for i in range(20))
    assert rest[-1].data["end_reason"] == "ok"


# --- Bytes that are no text ---

EVERY_BYTE = bytes(range(256)) * 40
WRITE_EVERY_BYTE = """
import sys
sys.stdout.buffer.write(bytes(range(256)) * 40); sys.stdout.flush()
"""


def test_every_byte_survives(box: Box) -> None:
    run_id = box.start(WRITE_EVERY_BYTE)
    events = [event for event in box.sse(run_id) if event.type == "stdout"]
    assert b"".join(base64.b64decode(event.data["base64"]) for event in events) == EVERY_BYTE
    assert "\ufffd" in events[0].data["text"]
    assert box.output(run_id, "stdout").content == EVERY_BYTE
    done = box.end_of(run_id)["stdout"]
    assert base64.b64decode(done["base64"]) == EVERY_BYTE
    assert (done["bytes"], done["omitted_bytes"]) == (len(EVERY_BYTE), 0)


def test_text_has_no_base64(box: Box) -> None:
    run_id = box.start("print('grün\\x00\\x1b[31m 𝄞', end='')")
    events = box.sse(run_id)
    assert [event.data for event in events if event.type == "stdout"] == [{"text": "grün\x00\x1b[31m 𝄞"}]
    assert "base64" not in box.end_of(run_id)["stdout"]


def test_a_character_in_two_writes_is_one(box: Box) -> None:
    code = "import os, time\nos.write(1, b'\\xe2\\x82'); time.sleep(0.3); os.write(1, b'\\xac!')"
    events = [event for event in box.sse(box.start(code)) if event.type == "stdout"]
    assert "".join(event.data["text"] for event in events) == "€!"
    assert all("base64" not in event.data for event in events)


def test_one_huge_line(box: Box) -> None:
    """32 MiB without a newline: the answer has head and tail, the stream and the spool have all."""
    size = 32 << 20
    run_id = box.start(f"print('a' * {size}, end='')")
    digest, got = hashlib.sha256(), 0
    for event in box.sse(run_id):
        if event.type == "stdout":
            digest.update(event.data["text"].encode())
            got += len(event.data["text"])
    assert got == size
    whole = box.output(run_id, "stdout").content
    assert digest.digest() == hashlib.sha256(whole).digest() == hashlib.sha256(b"a" * size).digest()
    told = box.end_of(run_id)["stdout"]
    assert told["bytes"] == size and told["omitted_bytes"] > size - (1 << 20)
    assert len(told["text"]) <= 1 << 20


# --- Limits ---


def test_inline_bytes(run: Run) -> None:
    done = run("for i in range(5000): print(i)", inline_bytes=2048)
    whole = "".join(f"{i}\n" for i in range(5000))
    text = done["stdout"]["text"]
    note = f"\n[… {done['stdout']['omitted_bytes']} bytes are left out here …]\n"
    head, tail = text.split(note)
    assert done["end_reason"] == "ok" and whole.startswith(head) and whole.endswith(tail)
    assert len(head) + done["stdout"]["omitted_bytes"] + len(tail) == done["stdout"]["bytes"] == len(whole)
    assert len(text.encode()) <= 2048


@pytest.mark.parametrize(
    "fields",
    [{"inline_bytes": 1023}, {"inline_bytes": (4 << 20) + 1}, {"on_output_limit": "stop"}, {"output_max_bytes": 0}],
)
def test_limits_out_of_bounds_are_refused(box: Box, fields: dict[str, Any]) -> None:
    answer = box.client.post(box.runs, json={"code": "1"} | fields)
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == next(iter(fields))


def test_beyond_its_limit_a_run_ends(run: Run) -> None:
    done = run("import time\nprint('x' * 10_000)\ntime.sleep(60)", output_max_bytes=5000)
    assert done["end_reason"] == "output_limit" and done["limit"] == {"name": "output_max_bytes", "value": 5000}
    assert done["stdout"]["bytes"] == 5000


def test_or_it_goes_on_and_the_rest_is_counted(box: Box) -> None:
    code = "print('x' * 9_999)\nkept = 41\nprint('y' * 999)"
    run_id = box.start(code, output_max_bytes=5000, on_output_limit="discard")
    events = box.sse(run_id)
    done = box.end_of(run_id)
    assert done["end_reason"] == "ok" and done["limits_hit"] == ["output"]
    assert text_of(events, "stdout") == "x" * 5000
    assert done["metrics"]["output_bytes"] == 11_000 and done["metrics"]["discarded_bytes"] == 6000
    assert [event.data["action"] for event in events if event.type == "step"] == ["discard"]
    assert box.output(run_id, "stdout").content == b"x" * 5000
    answer = box.client.post(box.runs, json={"code": "kept + 1"}).json()
    assert answer["results"][0]["data"]["text/plain"] == "42"


# --- The whole output, by range ---

INTERLEAVED = """
import sys
for i in range(100):
    print("out", i); print("err", i, file=sys.stderr)
"""


def test_the_streams_of_an_output(box: Box) -> None:
    run_id = box.start(INTERLEAVED)
    box.end_of(run_id)
    out = "".join(f"out {i}\n" for i in range(100)).encode()
    err = "".join(f"err {i}\n" for i in range(100)).encode()
    both = "".join(f"out {i}\nerr {i}\n" for i in range(100)).encode()
    assert box.output(run_id, "stdout").content == out
    assert box.output(run_id, "stderr").content == err
    answer = box.output(run_id)
    assert answer.content == both
    assert answer.headers["accept-ranges"] == "bytes" and answer.headers["x-output-complete"] == "true"


HUNDRED_LINES = "".join(f"out {i}\n" for i in range(100)).encode()


@pytest.mark.parametrize(
    ("asked", "part"),
    [
        ("bytes=0-0", slice(0, 1)),
        ("bytes=10-19", slice(10, 20)),
        ("bytes=300-", slice(300, len(HUNDRED_LINES))),
        ("bytes=-5", slice(len(HUNDRED_LINES) - 5, len(HUNDRED_LINES))),
        ("bytes=680-9999", slice(680, len(HUNDRED_LINES))),
    ],
)
def test_a_range_of_it(box: Box, asked: str, part: slice) -> None:
    run_id = box.start("for i in range(100): print('out', i)")
    box.end_of(run_id)
    answer = box.output(run_id, "stdout", Range=asked)
    assert answer.status_code == 206 and answer.content == HUNDRED_LINES[part]
    assert answer.headers["content-range"] == f"bytes {part.start}-{part.stop - 1}/{len(HUNDRED_LINES)}"


def test_a_range_that_has_no_bytes(box: Box) -> None:
    run_id = box.start("print('12345')")
    box.end_of(run_id)
    answer = box.output(run_id, Range="bytes=6-")
    assert answer.status_code == 416 and answer.headers["content-range"] == "bytes */6"
    assert box.output(run_id, Range="bytes=1-2,4-5").status_code == 200, "several ranges: the whole is sent"


def test_output_is_read_while_the_run_goes_on(box: Box) -> None:
    run_id = box.start("import time\nprint('one', flush=True)\ntime.sleep(3)\nprint('two')")
    box.started(run_id)
    wait_until(lambda: box.output(run_id).content == b"one\n", 30, "its first line can be read")
    so_far = box.output(run_id, Range="bytes=1-")
    assert so_far.content == b"ne\n" and so_far.headers["content-range"] == "bytes 1-3/*"
    assert so_far.headers["x-output-complete"] == "false"
    assert box.output(run_id, Range="bytes=4-").status_code == 416
    box.end_of(run_id)
    assert box.output(run_id, Range="bytes=4-").content == b"two\n"


def test_a_large_output_by_pieces(box: Box) -> None:
    """The pieces of 20 MB of lines are those of the whole, wherever they begin."""
    run_id = box.start("for i in range(2_000_000): print(f'{i:09}')")
    box.end_of(run_id)
    whole = "".join(f"{i:09}\n" for i in range(2_000_000)).encode()
    step = 3_333_333
    for first in range(0, len(whole), step):
        piece = box.output(run_id, "stdout", Range=f"bytes={first}-{first + step - 1}")
        assert piece.content == whole[first : first + step], first


def test_output_that_is_not_there(box: Box, client: httpx.Client) -> None:
    quiet = box.start("x = 1")
    box.end_of(quiet)
    assert box.output(quiet).content == b"", "it wrote nothing"
    box.client.post(box.runs, json={"code": "1"})
    assert box.output(quiet).content == b"", "also when the next run has begun"
    assert box.output(quiet, "both").status_code == 422
    assert box.output("a" * 20).status_code == 404
    other = Box(client, box.server)
    run_id = other.start("print('gone')")
    other.end_of(run_id)
    client.delete(f"/v1/sandboxes/{other.id}")
    gone = box.output(run_id)
    assert gone.status_code == 404 and "sandbox is gone" in gone.json()["error"]["message"]
    assert box.get(run_id)["stdout"]["text"] == "gone\n"


def test_a_run_that_waits_has_no_output_yet(box: Box) -> None:
    first = box.start("import time; time.sleep(1)")
    second = box.start("print(2)")
    answer = box.output(second)
    assert answer.status_code == 409 and "has not begun" in answer.json()["error"]["message"]
    box.end_of(second)
    assert box.output(second).content == b"2\n"
    assert box.end_of(first)["end_reason"] == "ok"
