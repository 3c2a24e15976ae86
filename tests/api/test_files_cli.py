"""`cloister cp` and `cloister ls`, as a user calls them."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import Cli
from service import Service
from test_files_more import Files


@pytest.fixture
def files(client: httpx.Client, sandbox: dict[str, Any]) -> Files:
    return Files(client, sandbox["id"])


@pytest.fixture
def place(sandbox: dict[str, Any]) -> str:
    return sandbox["id"]


def test_a_file_both_ways(cli: Cli, files: Files, place: str, tmp_path: Path) -> None:
    content = os.urandom(3_000_000)
    (tmp_path / "local").write_bytes(content)
    (tmp_path / "local").chmod(0o755)
    done = cli("cp", "local", f"{place}:dir/remote", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["bytes"] == len(content)
    assert files.ask("stat", "dir/remote").json()["mode"] == "0755"
    assert cli("cp", "local", f"{place}:dir").returncode == 0  # into a directory
    assert files.names("dir") == ["local", "remote"]
    assert cli("cp", f"{place}:dir/remote", "back").returncode == 0
    assert (tmp_path / "back").read_bytes() == content
    assert cli("cp", f"{place}:dir/remote", ".").returncode == 0
    assert (tmp_path / "remote").read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == ["back", "local", "remote"]


def test_a_directory_both_ways(cli: Cli, files: Files, place: str, tmp_path: Path) -> None:
    source = tmp_path / "project"
    (source / "deep").mkdir(parents=True)
    (source / "a").write_bytes(b"a" * 100_000)
    (source / "deep/b").write_bytes(b"b")
    (source / "link").symlink_to("a")
    assert cli("cp", "project", f"{place}:new").returncode == 0
    assert files.names("new", depth=9) == ["a", "deep", "deep/b", "link"]
    assert cli("cp", "project", f"{place}:").returncode == 0  # into the home
    assert files.names("project") == ["a", "deep", "link"]
    assert cli("cp", f"{place}:new", "back").returncode == 0
    assert (tmp_path / "back/a").read_bytes() == b"a" * 100_000
    assert (tmp_path / "back/link").readlink() == Path("a")


def test_standard_input_and_output(server: Service, files: Files, place: str) -> None:
    def call(*words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        command = [server.build.program("cloister"), "cp", *words]
        return subprocess.run(command, input=stdin, capture_output=True, env=server.environment(), timeout=120)

    content = os.urandom(200_000)
    assert call("-", f"{place}:f", stdin=content).returncode == 0
    assert files.get("f").content == content
    assert call(f"{place}:f", "-").stdout == content
    files.put("d/x", b"x")
    with tarfile.open(fileobj=io.BytesIO(call(f"{place}:d", "-").stdout)) as archive:
        assert archive.getnames() == ["x"]


def test_errors_say_what_is_wrong(cli: Cli, place: str) -> None:
    missing = cli("cp", f"{place}:none", "x")
    assert (missing.returncode, "none" in missing.stderr) == (66, True)
    assert cli("cp", "none", f"{place}:x").returncode == 66
    assert cli("cp", "a", "b").returncode == 2
    gone = cli("cp", f"{'a' * 20}:x", "y")
    assert gone.returncode == 66
    refused = cli("cp", f"{place}:/etc/shadow", "x")
    assert refused.returncode == 2
    assert "shadow" in refused.stderr
    assert cli("ls", f"{place}:none").returncode == 66


def test_ls(cli: Cli, files: Files, place: str) -> None:
    files.put("t/d/inner", b"x" * 1234, mode="0600")
    files.put("t/file", b"")
    assert cli("ls", f"{place}:t").stdout == "d/\nfile\n"
    assert "t/" in cli("ls", place).stdout.splitlines()
    assert cli("ls", f"{place}:t/d").stdout == "inner\n"
    assert cli("ls", f"{place}:/home/user/t", "--depth", "2").stdout == "d/\nd/inner\nfile\n"
    long = cli("ls", "-l", f"{place}:t/d").stdout
    assert long.startswith("0600  user   1.2 KB  20")
    (entry,) = json.loads(cli("ls", f"{place}:t/d", "--json").stdout)["entries"]
    assert (entry["path"], entry["size"]) == ("/home/user/t/d/inner", 1234)


def test_a_hostile_archive_stays_below_its_directory(cli: Cli, files: Files, place: str, tmp_path: Path) -> None:
    """Names that a sandbox can make: links to elsewhere, and files behind them."""
    link = tarfile.TarInfo("d/out")
    link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(link)
    files.tar_up(".", out.getvalue())
    (tmp_path / "kept").write_text("kept")
    assert cli("cp", f"{place}:d", "got").returncode == 0
    assert (tmp_path / "got/out").is_symlink()
    files.client.delete(files.base, params={"path": "d/out"})
    files.put("d/out/kept", b"evil")
    again = cli("cp", f"{place}:d", "got")  # into got/d
    assert again.returncode == 0
    assert (tmp_path / "kept").read_text() == "kept"


def test_a_progress_bar_on_a_terminal(server: Service, place: str, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(400 << 20))
    ours, theirs = os.openpty()
    command = [server.build.program("cloister"), "cp", str(tmp_path / "big"), f"{place}:big"]
    process = subprocess.Popen(command, stderr=theirs, env=server.environment())
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:
        pass  # the terminal's end
    assert process.wait(120) == 0
    os.close(ours)
    assert b"big  " in shown
    assert b" of 419 MB  [" in shown
    assert shown.endswith(b"\r\x1b[K")
