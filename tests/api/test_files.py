"""Files of a sandbox over the API, whatever their names and sizes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from conftest import Run
from service import wait_until


class Files:
    def __init__(self, client: httpx.Client, sandbox_id: str) -> None:
        self._client = client
        self._path = f"/v1/sandboxes/{sandbox_id}/files"

    def put(self, path: str, content: bytes | Iterator[bytes]) -> httpx.Response:
        return self._client.put(self._path, params={"path": path}, content=content)

    def get(self, path: str) -> httpx.Response:
        return self._client.get(self._path, params={"path": path})


@pytest.fixture
def files(client: httpx.Client, sandbox: dict[str, Any]) -> Files:
    return Files(client, sandbox["id"])


def test_what_was_written_is_read(files: Files, run: Run) -> None:
    content = os.urandom(300_000)
    answer = files.put("data.bin", content)
    assert answer.json() == {"path": "/home/user/data.bin", "size": len(content)}
    assert files.get("/home/user/data.bin").content == content
    assert run("import os; s = os.stat('data.bin'); print(s.st_uid, s.st_gid, s.st_size)")["stdout"]["text"] == (
        f"1000 1000 {len(content)}\n"
    )


def test_parents_are_created_and_files_replaced(files: Files, run: Run) -> None:
    assert files.put("a/b/c.txt", b"first, and longer").status_code == 200
    assert files.put("a/b/c.txt", b"second").status_code == 200
    assert files.get("a/b/c.txt").content == b"second"
    assert run("import os; print(os.listdir('a/b'))")["stdout"]["text"] == "['c.txt']\n"


@pytest.mark.parametrize(
    "name", ["with space", "ümläut-文字", "a&b=c?d#e", "%41", "-rf", "new\nline", ".hidden", "x" * 255]
)
def test_any_name(name: str, files: Files, run: Run) -> None:
    assert files.put(name, b"x").status_code == 200
    assert files.get(name).content == b"x"
    assert run(f"import os; print({name!r} in os.listdir())")["stdout"]["text"] == "True\n"


def test_an_empty_file(files: Files) -> None:
    assert files.put("empty", b"").json()["size"] == 0
    answer = files.get("empty")
    assert (answer.status_code, answer.content) == (200, b"")


def test_a_large_file_is_streamed(files: Files) -> None:
    piece = os.urandom(1 << 20)
    assert files.put("large", (piece for _ in range(100))).json()["size"] == 100 << 20
    content = files.get("large").content
    assert len(content) == 100 << 20
    assert content == piece * 100


def test_what_a_run_wrote_is_read(files: Files, run: Run) -> None:
    run("open('made', 'w').write('by code')")
    assert files.get("made").content == b"by code"


@pytest.mark.parametrize("path", ["missing", "/no/such/dir/file"])
def test_a_missing_file(path: str, files: Files) -> None:
    answer = files.get(path)
    assert answer.status_code == 404
    assert path in answer.json()["error"]["message"]


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 5000])
def test_a_path_that_is_none(path: str, files: Files) -> None:
    for answer in (files.get(path), files.put(path, b"x")):
        assert answer.status_code == 422
        assert answer.json()["error"]["field"] == "path"


def test_a_missing_path(client: httpx.Client, sandbox: dict[str, Any]) -> None:
    answer = client.get(f"/v1/sandboxes/{sandbox['id']}/files")
    assert (answer.status_code, answer.json()["error"]["field"]) == (422, "path")


@pytest.mark.parametrize("path", ["/home/user", "/", "/dev/zero", "/proc/self/mem", "/dev/tty"])
def test_what_is_no_plain_file(path: str, files: Files) -> None:
    """A directory, an endless device: an error, never a hanging read."""
    assert files.get(path).status_code in (403, 404, 409, 422)


def test_a_pipe_does_not_hang(files: Files, run: Run) -> None:
    run("import os; os.mkfifo('pipe')")
    assert files.get("pipe").status_code in (409, 422)


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/opt/cloister/evil", "/usr/evil", "/proc/1/environ", "/usr/bin/python3"]
)
def test_what_the_user_may_not_write(path: str, files: Files) -> None:
    assert files.put(path, b"evil").status_code in (403, 404, 409, 422)


@pytest.mark.parametrize("path", ["../../etc/shadow", "/etc/shadow", "/home/user/../../etc/shadow", "/proc/1/environ"])
def test_what_the_user_may_not_read(path: str, files: Files) -> None:
    assert files.get(path).status_code in (403, 404, 409, 422)


def test_links_lead_nowhere_outside(files: Files, run: Run) -> None:
    """A link is followed inside the sandbox only, with the user's rights."""
    run(
        "import os\nfor target, name in [('/etc/hostname', 'link'), ('/etc/shadow', 'secret'), ('loop', 'loop')]:\n"
        "    os.symlink(target, name)"
    )
    assert (
        files.get("link").text.strip() == run("print(open('/etc/hostname').read(), end='')")["stdout"]["text"].strip()
    )
    assert files.get("secret").status_code in (403, 404, 409, 422)
    assert files.get("loop").status_code in (403, 404, 409, 422)


def test_a_broken_upload_leaves_the_old_file(files: Files, run: Run) -> None:
    files.put("kept", b"old")
    listing = "import os; print(sorted(os.listdir()))"
    before = run(listing)["stdout"]["text"]

    def breaks_off() -> Iterator[bytes]:
        yield b"new" * 100_000
        raise ConnectionAbortedError("the client dies here")

    with pytest.raises(ConnectionAbortedError):
        files.put("kept", breaks_off())
    assert files.get("kept").content == b"old"
    wait_until(lambda: run(listing)["stdout"]["text"] == before, 20, "nothing of the upload is left")


def test_a_file_during_a_run(files: Files, client: httpx.Client, sandbox: dict[str, Any]) -> None:
    """Files are served while the interpreter is busy."""
    begun = client.post(
        f"/v1/sandboxes/{sandbox['id']}/runs",
        json={
            "code": "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('went')",
            "wait": False,
        },
    ).json()
    assert files.put("go", b"").status_code == 200
    events = client.get(f"/v1/runs/{begun['id']}/events")
    assert "went" in events.text
