"""Operations on files beside reading and writing one: ranges, conditions, many at once, trees, search, watch, links."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import os
import tarfile
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets
from conftest import Run, create_sandbox, new_client
from service import Build, Service, processes_in_group, running, wait_until
from sse import read_events


class Files:
    """The files of one sandbox."""

    def __init__(self, client: httpx.Client, sandbox_id: str) -> None:
        self.client = client
        self.base = f"/v1/sandboxes/{sandbox_id}/files"

    def put(self, path: str, content: bytes | Iterator[bytes], **more: Any) -> httpx.Response:
        headers = more.pop("headers", {})
        return self.client.put(self.base, params={"path": path, **more}, content=content, headers=headers)

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.client.get(self.base, params={"path": path}, headers=headers)

    def ask(self, what: str, path: str, **more: Any) -> httpx.Response:
        return self.client.get(f"{self.base}/{what}", params={"path": path, **more})

    def post(self, what: str, **body: Any) -> httpx.Response:
        return self.client.post(f"{self.base}/{what}", json=body)

    def names(self, path: str = ".", **more: Any) -> list[str]:
        answer = self.ask("list", path, **more)
        assert answer.status_code == 200, answer.text
        top = path if path.startswith("/") else f"/home/user/{path}".removesuffix("/.")
        names = [entry["path"].removeprefix(top.rstrip("/") + "/") for entry in answer.json()["entries"]]
        # The home has files of its own (.bashrc); what an upload would leave begins with ".cloister".
        return [name for name in names if not name.startswith(".") or name.startswith(".cloister")]

    def tar_up(self, path: str, archive: bytes, **more: Any) -> httpx.Response:
        return self.client.put(f"{self.base}/tar", params={"path": path, **more}, content=archive)


@pytest.fixture
def files(client: httpx.Client, sandbox: dict[str, Any]) -> Files:
    return Files(client, sandbox["id"])


def tar_of(*members: tuple[tarfile.TarInfo, bytes], mode: str = "w") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for member, content in members:
            archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


def member(name: str, content: bytes = b"", **fields: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


# --- One file ---


@pytest.mark.complaint(36)
@pytest.mark.parametrize(
    ("header", "first", "last"), [("bytes=0-0", 0, 0), ("bytes=5-9", 5, 9), ("bytes=90-", 90, 99), ("bytes=-7", 93, 99)]
)
def test_a_range(header: str, first: int, last: int, files: Files) -> None:
    content = bytes(range(100))
    files.put("f", content)
    answer = files.get("f", Range=header)
    assert (answer.status_code, answer.content) == (206, content[first : last + 1])
    assert answer.headers["content-range"] == f"bytes {first}-{last}/100"


def test_a_range_that_is_not_there(files: Files) -> None:
    files.put("f", b"abc")
    answer = files.get("f", Range="bytes=3-")
    assert (answer.status_code, answer.headers["content-range"]) == (416, "bytes */3")


def test_a_copy_that_is_current_is_not_sent(files: Files) -> None:
    etag = files.put("f", b"one").headers["etag"]
    first = files.get("f")
    assert first.headers["etag"] == etag
    assert files.get("f", **{"If-None-Match": etag}).status_code == 304
    assert files.get("f", **{"If-Modified-Since": first.headers["last-modified"]}).status_code == 304
    assert files.get("f", **{"If-Match": '"other"'}).status_code == 412
    assert files.get("f", Range="bytes=1-", **{"If-Range": '"other"'}).status_code == 200
    files.put("f", b"two")
    again = files.get("f", **{"If-None-Match": etag})
    assert (again.status_code, again.content) == (200, b"two")


def test_an_upload_that_depends_on_what_is_there(files: Files) -> None:
    etag = files.put("f", b"one", headers={"If-None-Match": "*"}).headers["etag"]
    for headers in ({"If-None-Match": "*"}, {"If-Match": '"other"'}):
        refused = files.put("f", b"two", headers=headers)
        assert (refused.status_code, refused.json()["error"]["code"]) == (412, "failed_precondition")
    assert files.get("f").content == b"one"
    assert files.put("f", b"two", headers={"If-Match": etag}).status_code == 200
    assert files.put("f", b"three", headers={"If-Match": etag}).status_code == 412
    assert files.get("f").content == b"two"


def test_modes_owners_and_metadata(files: Files, run: Run) -> None:
    files.put("script", b"#!/bin/sh\necho ran\n", mode="0755", headers={"X-Metadata-Source": "a test"})
    files.put("script", b"#!/bin/sh\necho ran again\n", headers={"X-Metadata-Source": "a test"})
    entry = files.ask("stat", "script").json()
    assert (entry["mode"], entry["user"], entry["metadata"]) == ("0755", "user", {"source": "a test"})
    assert run("import subprocess; print(subprocess.run('./script', capture_output=True).stdout)")["stdout"]["text"] == (
        "b'ran again\\n'\n"
    )
    changed = files.client.patch(files.base, params={"path": "script"}, json={"mode": "0600", "metadata": {"k": "v"}})
    assert (changed.json()["mode"], changed.json()["metadata"]) == ("0600", {"k": "v"})
    files.put("/etc/from-api", b"x", user="root")
    assert files.ask("stat", "/etc/from-api").json()["user"] == "root"
    assert run("import os; print(os.access('/etc/from-api', os.W_OK))")["stdout"]["text"] == "False\n"


def test_append_and_durable(files: Files) -> None:
    assert files.put("log", b"one\n", append="true", durable="true").status_code == 200
    assert files.put("log", b"two\n", append="true").status_code == 200
    assert files.get("log").content == b"one\ntwo\n"
    assert files.put("d/durable", b"x", durable="true").json()["size"] == 1


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_compressed_upload(coding: str, files: Files) -> None:
    content = b"some text " * 100_000
    packed = gzip.compress(content) if coding == "gzip" else zlib.compress(content)
    assert files.put("f", packed, headers={"Content-Encoding": coding}).json()["size"] == len(content)
    assert files.get("f").content == content
    broken = files.put("f", packed[:-3], headers={"Content-Encoding": coding})
    assert (broken.status_code, broken.json()["error"]["field"]) == (422, "body")
    assert files.put("f", b"x", headers={"Content-Encoding": "br"}).status_code == 422
    assert files.get("f").content == content


def test_what_the_kernel_makes_up_is_read(files: Files) -> None:
    """Files of /proc have no size, and something to say."""
    assert b"MemTotal" in files.get("/proc/meminfo").content


def test_a_link_to_a_file_stays_one(files: Files, run: Run) -> None:
    run("import os; open('target', 'w').write('old'); os.symlink('target', 'link')")
    files.put("link", b"new")
    assert files.get("target").content == b"new"
    assert files.ask("stat", "link").json()["target"] == "target"


# --- Several ---


def test_several_files_in_one_call(files: Files) -> None:
    parts = [("file", (name, content)) for name, content in [("a.txt", b"1"), ("deep/b", b""), ("/tmp/c", b"3" * 200_000)]]
    answer = files.client.post(files.base, params={"path": "up"}, files=parts)
    assert answer.status_code == 200, answer.text
    assert [file["path"] for file in answer.json()["files"]] == ["/home/user/up/a.txt", "/home/user/up/deep/b", "/tmp/c"]
    assert files.get("up/a.txt").content == b"1"
    assert files.get("/tmp/c").content == b"3" * 200_000


def test_one_path_twice_in_a_call(files: Files) -> None:
    parts = [("file", ("a", b"1")), ("file", ("a", b"2"))]
    answer = files.client.post(files.base, files=parts)
    assert (answer.status_code, answer.json()["error"]["field"]) == (422, "file")
    assert files.client.post(files.base, content=b"x", headers={"Content-Type": "text/plain"}).status_code == 400


def test_a_listing_in_pages(files: Files) -> None:
    for name in ("b/1", "b/2/x", "a", "b-", "c"):
        files.put(f"top/{name}", b"x")
    every = ["a", "b", "b/1", "b/2", "b/2/x", "b-", "c"]
    assert files.names("top", depth=9) == every
    assert files.names("top") == ["a", "b", "b-", "c"]
    got, after = [], ""
    while True:
        page = files.ask("list", "top", depth=9, limit=2, after=after).json()
        got += [entry["path"].removeprefix("/home/user/top/") for entry in page["entries"]]
        if "next" not in page:
            break
        after = page["next"]
    assert got == every
    assert files.ask("list", "top/a").status_code == 422
    assert files.ask("list", "none").status_code == 404


def test_directories_moved_copied_and_removed(files: Files) -> None:
    assert files.post("mkdir", path="a/b", mode="0700").status_code == 201
    assert files.post("mkdir", path="a/b").status_code == 200
    assert files.post("mkdir", path="a/b", exclusive=True).status_code == 409
    files.put("a/b/f", b"text")
    assert files.post("copy", path="a", to="c").status_code == 422
    assert files.post("copy", path="a", to="c", recursive=True).status_code == 200
    assert files.post("move", path="c", to="x/y").json()["path"] == "/home/user/x/y"
    assert files.get("x/y/b/f").content == b"text"
    assert files.post("move", path="a/b/f", to="x").status_code == 409
    assert files.post("copy", path="a/b/f", to="g").status_code == 200
    assert files.post("copy", path="a/b/f", to="g").status_code == 409
    assert files.post("copy", path="a/b/f", to="g", overwrite=True).status_code == 200
    assert files.post("move", path="none", to="z").status_code == 404
    delete = {"path": "x"}
    assert files.client.delete(files.base, params=delete).status_code == 409
    assert files.client.delete(files.base, params=delete | {"recursive": "true"}).status_code == 204
    assert files.client.delete(files.base, params=delete).status_code == 404
    assert files.names() == ["a", "g"]


def test_a_directory_of_the_template_can_be_moved(files: Files) -> None:
    """An overlay cannot rename it: it is copied."""
    moved = files.post("move", path="/usr/share/misc", to="/home/user/misc", user="root")
    assert moved.status_code == 200, moved.text
    assert files.ask("stat", "/usr/share/misc").status_code == 404


def test_a_search(files: Files) -> None:
    files.put("src/a.py", b"one\ntwo needle\n")
    files.put("src/deep/b.py", b"Needle")
    files.put("notes.txt", b"needle")
    by_name = files.ask("search", ".", glob="*.py").json()
    assert [m["entry"]["path"] for m in by_name["matches"]] == ["/home/user/src/a.py", "/home/user/src/deep/b.py"]
    (hit,) = files.ask("search", ".", glob="src/**", text="needle").json()["matches"]
    assert (hit["line"], hit["column"], hit["text"]) == (2, 5, "two needle")
    every = files.ask("search", ".", text="needle", ignore_case="true").json()
    assert (len(every["matches"]), every["truncated"]) == (3, False)
    assert files.ask("search", ".", text="needle", limit=1).json()["truncated"]
    assert files.ask("search", ".").status_code == 422


# --- Archives ---


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_ten_thousand_small_files_as_one_archive(mode: str, files: Files) -> None:
    members = [member(f"d{n % 100}/f{n}", f"content {n}".encode()) for n in range(10_000)]
    archive = tar_of(*members, mode=mode)
    answer = files.tar_up("many", archive)
    assert answer.json() == {"entries": 10_000, "bytes": sum(len(content) for _, content in members)}
    back = files.client.get(f"{files.base}/tar", params={"path": "many"})
    with tarfile.open(fileobj=io.BytesIO(back.content)) as got:
        contents = {info.name: got.extractfile(info).read() for info in got if info.isfile()}  # type: ignore[union-attr]
    assert contents == {info.name: content for info, content in members}


def test_an_archive_is_merged(files: Files, run: Run) -> None:
    files.put("top/kept", b"kept")
    files.put("top/old", b"old")
    link = member("link", type=tarfile.SYMTYPE, linkname="old")
    archive = tar_of(member("./old", b"new", mode=0o750), member("sub/x", b"x", mtime=1_000_000_000), link)
    assert files.tar_up("top", archive).json()["entries"] == 3
    assert files.names("top", depth=9) == ["kept", "link", "old", "sub", "sub/x"]
    entry = files.ask("stat", "top/old").json()
    assert (entry["mode"], entry["user"], files.get("top/link").content) == ("0750", "user", b"new")
    assert files.ask("stat", "top/sub/x").json()["modified_at"].startswith("2001-09-09")


# --- Watching ---


def changes(answer: httpx.Response) -> Iterator[dict[str, Any]]:
    for line in answer.iter_lines():
        event = json.loads(line)
        if event["event"] != "heartbeat":
            yield event


def until(events: Iterator[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    for event in events:
        if (event["event"], event.get("name")) == (kind, name):
            return event
    raise AssertionError(f"no {kind} of {name}")


def test_a_watch(files: Files, run: Run) -> None:
    params = {"path": ".", "recursive": "true"}
    lines = {"Accept": "application/x-ndjson"}
    with files.client.stream("GET", f"{files.base}/watch", params=params, headers=lines) as answer:
        events = changes(answer)
        assert next(events)["event"] == "started"
        run("import os; os.makedirs('d/e'); open('d/e/f', 'w').write('x')")
        assert until(events, "create", "d/e/f")["path"] == "/home/user/d/e/f"
        run("import os; os.rename('d', 'g'); os.remove('g/e/f')")
        assert until(events, "rename", "d")["to"] == "/home/user/g"
        assert until(events, "remove", "g/e/f")["type"] == "file"
        files.put("uploaded", b"1")
        until(events, "create", "uploaded")
        files.put("uploaded", b"2")
        assert until(events, "write", "uploaded")["path"] == "/home/user/uploaded"


def test_a_watch_by_websocket(files: Files, server: Service) -> None:
    url = server.url.replace("http", "ws") + f"{files.base}/watch?path=/tmp"

    async def watch() -> list[dict[str, Any]]:
        async with websockets.connect(url, extra_headers={"Authorization": f"Bearer {server.key}"}) as socket:
            first = json.loads(await asyncio.wait_for(socket.recv(), 20))
            await asyncio.to_thread(files.put, "/tmp/x", b"")
            return [first, json.loads(await asyncio.wait_for(socket.recv(), 20))]

    assert asyncio.run(watch()) == [
        {"event": "started"},
        {"event": "create", "path": "/tmp/x", "name": "x", "type": "file"},
    ]


def test_a_watch_that_nobody_reads_is_bounded(files: Files, run: Run) -> None:
    """The slow reader is told what it has missed: nobody has kept it meanwhile."""
    params = {"path": ".", "recursive": "true"}
    lines = {"Accept": "application/x-ndjson"}
    with files.client.stream("GET", f"{files.base}/watch", params=params, headers=lines) as answer:
        run("for i in range(200_000): open(f'f{i % 50}-' + 'x' * 200, 'w').close()", timeout_ms=100_000)
        assert any(event["event"] == "overflow" for event in zip_until(changes(answer), 400_000))


def zip_until(events: Iterator[dict[str, Any]], most: int) -> Iterator[dict[str, Any]]:
    for _, event in zip(range(most), events):
        yield event


def memory_of(server: Service) -> int:
    status = Path(f"/proc/{server.program('cloisterd').pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def test_a_watch_ends_with_its_directory_and_its_sandbox(client: httpx.Client) -> None:
    made = create_sandbox(client)
    files = Files(client, made["id"])
    files.put("d/f", b"x")
    with client.stream("GET", f"{files.base}/watch", params={"path": "d"}) as answer:
        events = read_events(answer.iter_bytes())
        assert next(events).data["event"] == "started"
        client.delete(files.base, params={"path": "d", "recursive": "true"})
        assert [event.data["event"] for event in events][-1] == "ended"
    with client.stream("GET", f"{files.base}/watch", params={"path": "."}) as answer:
        events = read_events(answer.iter_bytes())
        assert next(events).data["event"] == "started"
        assert client.delete(f"/v1/sandboxes/{made['id']}").status_code == 204
        assert [event.data for event in events] == [{"event": "ended", "reason": "sandbox"}]


# --- URLs that are signed ---


def test_a_signed_url(files: Files, anonymous: httpx.Client) -> None:
    files.put("a b&c", b"shared")
    made = files.post("sign", path="a b&c").json()
    assert made["method"] == "GET"
    assert anonymous.get(made["url"]).content == b"shared"
    assert anonymous.get(made["url"], headers={"Range": "bytes=1-2"}).content == b"ha"
    assert anonymous.put(made["url"], content=b"x").status_code == 403
    assert anonymous.get(made["url"].replace("path=a", "path=b")).status_code == 403
    assert anonymous.get(made["url"] + "0").status_code == 403
    assert anonymous.get(files.base + "/stat", params={"path": "a b&c"}).status_code == 401
    upload = files.post("sign", path="up", access="write").json()
    assert anonymous.put(upload["url"], content=b"new").status_code == 200
    assert anonymous.get(upload["url"]).status_code == 403
    assert files.get("up").content == b"new"


def test_a_signed_url_names_its_user_and_ends(files: Files, anonymous: httpx.Client, client: httpx.Client) -> None:
    made = files.post("sign", path="/etc/shadow", expires_seconds=60).json()
    assert anonymous.get(made["url"] + "&user=root").status_code == 422
    short = files.post("sign", path="/etc/hostname", expires_seconds=1).json()
    wait_until(lambda: anonymous.get(short["url"]).status_code == 403, 10, "the URL expires")
    key = client.post("/v1/keys", json={"name": "signer"}).json()
    with httpx.Client(base_url=client.base_url, headers={"X-API-Key": key["key"]}, trust_env=False) as other:
        signed = Files(other, files.base.split("/")[3]).post("sign", path="/etc/hostname").json()
    assert anonymous.get(signed["url"]).status_code == 200
    assert client.delete(f"/v1/keys/{key['id']}").status_code == 204
    assert anonymous.get(signed["url"]).status_code == 403
    assert files.post("sign", path="x", expires_seconds=10**9).status_code == 422


def test_another_project_signs_nothing_here(files: Files, stranger: httpx.Client) -> None:
    assert Files(stranger, files.base.split("/")[3]).post("sign", path="x").status_code == 404


# --- Large ones ---


def agent_memory(sandbox: dict[str, Any]) -> int:
    """What all of the sandbox's processes hold that is their own; the agent's is the first."""
    pids = processes_in_group(sandbox["id"])
    total = 0
    for pid in pids:
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        if "RssAnon:" in status and "cloister-agent" in Path(f"/proc/{pid}/cmdline").read_text():
            total += int(status.split("RssAnon:")[1].split()[0]) * 1024
    return total


@pytest.fixture
def thrifty(build: Build) -> Iterator[Service]:
    """A service whose AddressSanitizer keeps little of what was freed."""
    service = Service(build)
    service.asan_options = "quarantine_size_mb=4"
    with running(service):
        yield service


@pytest.mark.complaint(36)
@pytest.mark.parametrize("size", [256 << 20, pytest.param(4 << 30, marks=pytest.mark.full)])
def test_a_large_file_up_and_down_with_flat_memory(size: int, thrifty: Service) -> None:
    server, client = thrifty, new_client(thrifty, Authorization=f"Bearer {thrifty.key}")
    made = create_sandbox(client)
    files = Files(client, made["id"])
    files.put("warm", b"x" * 1_000_000)
    before = memory_of(server), agent_memory(made)
    most = [0, 0]
    piece = os.urandom(1 << 20)

    def pieces() -> Iterator[bytes]:
        for n in range(size >> 20):
            if n % 64 == 0:
                most[0] = max(most[0], memory_of(server))
                most[1] = max(most[1], agent_memory(made))
            yield piece

    assert files.put("large", pieces()).json()["size"] == size
    got = 0
    with client.stream("GET", files.base, params={"path": "large"}) as answer:
        for n, chunk in enumerate(answer.iter_bytes(1 << 20)):
            assert chunk == piece
            got += len(chunk)
            if n % 64 == 0:
                most[0] = max(most[0], memory_of(server))
                most[1] = max(most[1], agent_memory(made))
    assert got == size
    assert most[0] - before[0] < 40 << 20, "the server's memory is flat"
    assert most[1] - before[1] < 16 << 20, "the agent's memory is flat"
    client.delete(f"/v1/sandboxes/{made['id']}")


def test_two_writers_of_one_file(files: Files, server: Service) -> None:
    """One of both is there in the end, as a whole; never a mixture."""
    first, second = b"1" * 3_000_000, b"2" * 3_000_000
    def write(content: bytes) -> None:
        with new_client(server, Authorization=f"Bearer {server.key}") as own:
            for _ in range(5):
                assert Files(own, files.base.split("/")[3]).put("f", content).status_code == 200

    writers = [threading.Thread(target=write, args=(content,)) for content in (first, second)]
    for writer in writers:
        writer.start()
    deadline = time.monotonic() + 30
    while any(writer.is_alive() for writer in writers) and time.monotonic() < deadline:
        answer = files.get("f")
        assert answer.status_code == 404 or answer.content in (first, second)
    for writer in writers:
        writer.join()
    assert files.get("f").content in (first, second)
    assert files.names() == ["f"]
