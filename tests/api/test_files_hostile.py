"""Group F of the catalogue (docs/security.md): paths, links, races, special files, archives and broken uploads.

The API's side of it runs as the sandbox's user below the sandbox's root, so what must hold is: nothing of the host
and nothing that the user may not see ever comes out, nothing outside is written, and nothing hangs.
"""

from __future__ import annotations

import io
import os
import socket
import tarfile
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import Run, create_sandbox
from service import Service, wait_until
from test_files_more import Files, member, tar_of

SECRET = b"a secret of the host"


@pytest.fixture
def files(client: httpx.Client, sandbox: dict[str, Any]) -> Files:
    return Files(client, sandbox["id"])


@pytest.fixture
def host_secret() -> Iterator[Path]:
    """A file of the host that everybody may read."""
    path = Path("/tmp", f"cl-secret-{os.getpid()}")
    path.write_bytes(SECRET)
    path.chmod(0o644)
    yield path
    assert path.read_bytes() == SECRET
    path.unlink()


def refused(answer: httpx.Response) -> bool:
    assert answer.status_code != 500, answer.text
    return 400 <= answer.status_code < 500


# --- F01: dots, slashes, escapes ---


@pytest.mark.parametrize("up", ["../" * 30, "/../" * 30, "//..//../", "./.././../../../../../", "/usr/../../../../../.."])
def test_f01_dots_end_at_the_root(up: str, files: Files, host_secret: Path) -> None:
    path = up + str(host_secret)
    assert refused(files.get(path))
    files.put(path, b"inside")
    assert files.get(str(host_secret)).content == b"inside"  # of the sandbox
    for what in ("stat", "list", "tar"):
        assert SECRET not in files.ask(what, path).content


@pytest.mark.parametrize("raw", ["%2e%2e%2f%2e%2e%2fetc%2fshadow", "..%5c..%5cetc", "%00", "a%00b", "%c0%ae%c0%ae/", "x" * 5000])
def test_f01_escapes_are_names_or_errors(raw: str, files: Files) -> None:
    answer = files.client.get(f"{files.base}?path={raw}")
    assert refused(answer), answer.text


# --- F02: links ---


@pytest.mark.parametrize(
    "target", ["/etc/shadow", "/proc/self/root/etc/passwd", "/proc/1/root/etc/passwd", "/proc/self/fd/3", "/proc/self/environ",
               "/opt/cloister/bin/../../../proc/1/environ"]
)
def test_f02_a_link_reaches_no_more_than_the_user(target: str, files: Files, run: Run) -> None:
    run(f"import os; os.symlink({target!r}, 'link')")
    answer = files.get("link")
    assert answer.status_code == 200 or refused(answer)
    mine = run(f"try: print(len(open({target!r}, 'rb').read()))\nexcept OSError: print('no')")["stdout"]["text"].strip()
    if mine == "no" or "/proc/self/" in target or "/proc/1/" in target:
        assert refused(answer), answer.content[:100]
    assert refused(files.put("link", b"evil")) or files.ask("stat", target).status_code in (404, 422)


def test_f02_links_to_directories_are_not_walked(files: Files, run: Run) -> None:
    run("import os; os.mkdir('d'); os.symlink('/', 'd/root'); os.symlink('..', 'd/up')")
    assert files.names("d", depth=50) == ["root", "up"]
    assert files.ask("search", "d", glob="passwd").json()["matches"] == []
    archive = files.ask("tar", "d").content
    with tarfile.open(fileobj=io.BytesIO(archive)) as got:
        assert sorted((info.name, info.issym()) for info in got) == [("root", True), ("up", True)]
    assert files.post("copy", path="d", to="e", recursive=True).status_code == 200
    assert files.client.delete(files.base, params={"path": "d", "recursive": "true"}).status_code == 204
    assert files.ask("stat", "/etc/passwd").status_code == 200


# --- F03: races ---

FLIP = """
import os, threading
os.makedirs('real/inner', exist_ok=True)
open('real/inner/f', 'w').write('inside')
def flip():
    n = 0
    while not os.path.exists('stop'):
        n += 1
        os.symlink('/etc', 'new')
        os.rename('new', 'flip') if not os.path.isdir('flip') or os.path.islink('flip') else os.rename('flip', 'old')
        if os.path.lexists('new'): os.rename('new', 'flip')
        os.unlink('flip')
        if os.path.isdir('old'): os.rename('old', 'flip')
        else: os.makedirs('flip/inner'); open('flip/inner/f', 'w').write('inside')
    print(n)
flip()
"""


def test_f03_a_directory_that_becomes_a_link_and_back(
    files: Files, client: httpx.Client, sandbox: dict[str, Any]
) -> None:
    """While a path flips between a directory and a link to /etc, every answer is about one of both, or an error."""
    begun = client.post(f"/v1/sandboxes/{sandbox['id']}/runs", json={"code": FLIP, "wait": False}).json()
    wait_until(lambda: files.ask("stat", "real/inner/f").status_code == 200, 20, "it has begun")
    deadline = time.monotonic() + 6
    answers = 0
    while time.monotonic() < deadline:
        answers += 1
        got = files.get("flip/inner/f")
        assert got.status_code == 404 or got.content in (b"inside", b"written") or refused(got)
        put = files.put("flip/inner/f", b"written")
        assert put.status_code == 200 or refused(put), put.text
        gone = files.client.delete(files.base, params={"path": "flip/inner", "recursive": "true"})
        assert gone.status_code == 204 or refused(gone), gone.text
        changed = client.patch(files.base, params={"path": "flip"}, json={"mode": "0755"})
        assert changed.status_code == 200 or refused(changed), changed.text
        listed = files.ask("list", "flip", depth=3)
        assert listed.status_code == 200 or refused(listed), listed.text
    files.put("stop", b"")
    end = client.get(f"/v1/runs/{begun['id']}/events").text
    assert '"end_reason"' in end
    # /etc is root's: nothing of it was removed or written.
    assert files.ask("stat", "/etc/passwd").status_code == 200
    assert files.ask("stat", "/etc/inner").status_code == 404
    assert answers > 20


def test_f03_root_that_removes_does_not_follow(files: Files, client: httpx.Client, sandbox: dict[str, Any]) -> None:
    """A removal with root's rights beside code that swaps its directories for links."""
    code = (
        "import os\nwhile not os.path.exists('stop'):\n    os.makedirs('t/a/b', exist_ok=True)\n"
        "    try:\n        os.rename('t/a', 't/x'); os.symlink('/etc', 't/a'); os.unlink('t/a'); os.rename('t/x', 't/a')\n"
        "    except OSError: pass"
    )
    client.post(f"/v1/sandboxes/{sandbox['id']}/runs", json={"code": code, "wait": False})
    for _ in range(60):
        gone = files.client.delete(files.base, params={"path": "t", "recursive": "true", "user": "root"})
        assert gone.status_code == 204 or refused(gone), gone.text
    files.put("stop", b"")
    assert files.ask("stat", "/etc/passwd").status_code == 200
    assert files.ask("list", "/etc").status_code == 200


# --- F04: what is no file ---


def test_f04_special_files(files: Files, run: Run) -> None:
    run(
        "import os, socket\nos.mkdir('d'); os.mkfifo('d/fifo')\nsocket.socket(socket.AF_UNIX).bind('d/socket')\n"
        "open('d/sparse', 'w').truncate(1 << 33)\nopen('d/f', 'w').write('text')"
    )
    for name in ("d/fifo", "d/socket", "/dev/zero", "/dev/tty", "/dev/ptmx", "/proc/self/mem"):
        began = time.monotonic()
        assert refused(files.get(name)), name
        assert refused(files.put(name, b"x")), name
        assert name.startswith("/proc") or refused(files.ask("tar", name)), name
        assert time.monotonic() - began < 5
    assert [entry["type"] for entry in files.ask("list", "d").json()["entries"]] == ["file", "fifo", "socket", "file"]
    ranged = files.get("d/sparse", Range="bytes=8000000000-8000000009")
    assert (ranged.status_code, ranged.content) == (206, bytes(10))
    began = time.monotonic()
    found = files.ask("search", "d", text="text").json()
    assert [match["entry"]["path"] for match in found["matches"]] == ["/home/user/d/f"]
    assert time.monotonic() - began < 12
    with files.client.stream("GET", files.base, params={"path": "d/sparse"}) as answer:
        assert int(answer.headers["content-length"]) == 1 << 33
        assert next(answer.iter_bytes(1000)) == bytes(1000)
    assert files.get("d/f").content == b"text"


# --- F05: hard links to the template's files ---


def test_f05_hard_links(files: Files, run: Run, client: httpx.Client) -> None:
    run("import os\ntry: os.link('/usr/bin/python3', 'link')\nexcept OSError as e: print(e)")
    files.put("link", b"evil")
    files.put("/usr/bin/env", b"evil", user="root")  # copied up: this sandbox's only
    other = client.post("/v1/runs", json={"code": "import subprocess; print(subprocess.call(['/usr/bin/env', 'true']))"})
    assert other.json()["stdout"]["text"] == "0\n"
    assert run("print(1)")["stdout"]["text"] == "1\n"


# --- F06: archives that lead out ---


@pytest.mark.parametrize(
    "evil",
    [
        [member("../evil", b"x")],
        [member("/home/user/evil", b"x")],
        [member("a/../../evil", b"x")],
        [member("link", type=tarfile.SYMTYPE, linkname="/home/user"), member("link/evil", b"x")],
        [member("link", type=tarfile.SYMTYPE, linkname=".."), member("link/evil", b"x")],
        [member("hard", type=tarfile.LNKTYPE, linkname="../kept")],
        [member("hard", type=tarfile.LNKTYPE, linkname="/etc/passwd")],
        [member("device", type=tarfile.CHRTYPE, devmajor=1, devminor=3)],
        [member("fifo", type=tarfile.FIFOTYPE)],
        [member("f", b"x"), member("f/inner", b"x")],
        [member("x" * 5000, b"x")],
        [member("/".join(["d"] * 1000), b"x")],
    ],
    ids=lambda members: members[-1][0].name[:30],
)
def test_f06_an_archive_that_leads_out_is_refused_as_a_whole(
    evil: list[tuple[tarfile.TarInfo, bytes]], files: Files
) -> None:
    files.put("kept", b"kept")
    answer = files.tar_up("there", tar_of(member("good", b"good"), *evil))
    assert refused(answer), answer.text
    assert files.names(depth=9) == ["kept", "there"]
    assert files.get("kept").content == b"kept"


def test_f06_the_last_of_two_entries_counts(files: Files) -> None:
    assert files.tar_up("t", tar_of(member("f", b"first"), member("f", b"second"))).status_code == 200
    assert files.get("t/f").content == b"second"


def test_f06_a_directory_is_not_replaced_by_a_file(files: Files) -> None:
    files.put("t/d/inner", b"x")
    assert files.tar_up("t", tar_of(member("a", b"a"), member("d", b"file"))).status_code == 409
    assert files.names("t", depth=9) == ["d", "d/inner"]


# --- F07: bombs ---


def test_f07_a_bomb_of_zeros(files: Files, server: Service) -> None:
    """A few megabytes that become many gigabytes: refused by their ratio, nothing is left."""
    packer = zlib.compressobj(9, wbits=31)
    packed = b"".join(packer.compress(bytes(1 << 24)) for _ in range(64)) + packer.flush()
    for answer in (
        files.put("zeros", packed, headers={"Content-Encoding": "gzip"}),
        files.tar_up("t", packed),
    ):
        assert answer.status_code in (400, 413), answer.text
    assert [name for name in files.names(depth=9) if name != "t"] == []


@pytest.mark.parametrize("count", [260_000])
def test_f07_too_many_entries(count: int, files: Files) -> None:
    header = tarfile.TarInfo("same").tobuf()
    answer = files.tar_up("t", header * count + bytes(1024))
    assert answer.status_code == 413, answer.text
    assert files.names("t") == []


def test_f07_headers_that_promise_too_much(files: Files) -> None:
    huge = tarfile.TarInfo("huge")
    huge.size = 1 << 60
    assert refused(files.tar_up("t", huge.tobuf(format=tarfile.GNU_FORMAT)))
    pax = tarfile.TarInfo("pax")
    pax.type, pax.size = tarfile.XHDTYPE, 1 << 30
    assert refused(files.tar_up("t", pax.tobuf() + bytes(1 << 20)))
    assert files.names("t") == []


def test_f07_the_deepest_directories_are_removed(files: Files, run: Run) -> None:
    run("import os\nfor _ in range(20_000): os.mkdir('d'); os.chdir('d')", timeout_ms=60_000)
    assert len(files.names("/home/user", depth=128, limit=1000)) == 128
    assert refused(files.post("copy", path="d", to="e", recursive=True))
    gone = files.client.delete(files.base, params={"path": "d", "recursive": "true"})
    assert gone.status_code == 204, gone.text
    assert files.names() == []


# --- F08 and C05: uploads that break ---


def head_of_upload(server: Service, base: str, path: str, length: int) -> bytes:
    host = server.url.removeprefix("http://")
    return (
        f"PUT {base}?path={path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {server.key}\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


@pytest.mark.parametrize("sent", [0, 1, 65_535, 65_536, 300_000, 999_999])
def test_f08_an_upload_that_is_cut_off(sent: int, files: Files, server: Service) -> None:
    files.put("f", b"old")
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as raw:
        raw.sendall(head_of_upload(server, files.base, "f", 1_000_000) + b"n" * sent)
    wait_until(lambda: files.names() == ["f"], 20, "nothing of the upload is left")
    assert files.get("f").content == b"old"


def test_f08_an_archive_that_is_cut_off(files: Files, server: Service) -> None:
    archive = tar_of(*[member(f"f{n}", bytes(10_000)) for n in range(100)])
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as raw:
        raw.sendall(head_of_upload(server, files.base + "/tar", "t", len(archive)) + archive[:500_000])
    wait_until(lambda: files.names(depth=9) == ["t"], 20, "nothing of the archive is left")
    assert refused(files.tar_up("t", archive[:500_000]))
    assert files.names("t") == []


def test_c05_a_full_disk(client: httpx.Client) -> None:
    """No room for an upload: a typed error, the old file stays, nothing is left, and it goes on by itself."""
    made = create_sandbox(client, disk_mb=64)
    files = Files(client, made["id"])
    files.put("f", b"old")
    half = os.urandom(1 << 20)
    for upload in (
        lambda: files.put("f", (half for _ in range(120))),
        lambda: files.tar_up("t", tar_of(*[member(f"f{n}", half) for n in range(120)])),
        lambda: client.post(files.base, files=[("file", ("g", half * 120))]),
    ):
        answer = upload()
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large"), answer.text
        assert files.get("f").content == b"old"
        wait_until(lambda: set(files.names(depth=9)) <= {"f", "t"}, 30, "nothing is left")

    def room() -> bool:
        return files.put("after", half).status_code == 200

    wait_until(room, 40, "there is room again")
    assert client.delete(f"/v1/sandboxes/{made['id']}").status_code == 204


def test_f_many_at_once(files: Files) -> None:
    """Operations side by side do not wait for each other, and all are answered."""
    failed: list[str] = []

    def work(number: int) -> None:
        for step in range(10):
            answer = files.put(f"d/{number}-{step}", bytes(1000))
            if answer.status_code != 200:
                failed.append(answer.text)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failed == []
    assert len(files.names("d")) == 120
