"""R05, R07, R08: whatever code fills, it gets an error it can catch, and nobody else notices.

A sandbox can write to its root (with /tmp and /var/tmp on it), to /dev/shm, and to /run. The canary is a second
sandbox, which must go on as if nothing happened.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from conftest import create_sandbox
from service import Service

DISK_MB = 256
DELETE_SECONDS = 10

FILL = """
import errno, os
wrote, ended = 0, "never"
try:
    with open({path!r}, "wb", buffering=0) as file:
        while wrote < 8 << 30:
            wrote += file.write(bytes(1 << 20))
        os.fsync(file.fileno())
except OSError as error:
    ended = errno.errorcode[error.errno]
print(ended, wrote >> 20)
"""

# Files of no bytes in directories ever deeper, until there is no room for another.
FILL_NAMES = """
import errno, os
if {ballast_mb}:
    with open("ballast", "wb") as file:
        file.write(os.urandom({ballast_mb} << 20))
        os.fsync(file.fileno())
os.makedirs("names", exist_ok=True)
os.chdir("names")
made, ended = 0, "never"
try:
    while made < 1_000_000:
        if made % 1000 == 0:
            os.mkdir(f"d{{made}}")
            os.chdir(f"d{{made}}")
        os.close(os.open({name}, os.O_CREAT | os.O_WRONLY))
        made += 1
except OSError as error:
    ended = errno.errorcode[error.errno]
print(ended, made)
"""


@pytest.fixture
def canary(client: httpx.Client) -> Iterator[dict[str, Any]]:
    made = create_sandbox(client)
    run(client, made, "kept = 41; open('/tmp/kept', 'w').write('kept')")
    yield made
    still = run(client, made, "print(kept + 1, open('/tmp/kept').read(), open('/tmp/more', 'w').write('more'))")
    assert still["stdout"]["text"] == "42 kept 4\n"
    assert client.delete(f"/v1/sandboxes/{made['id']}").status_code == 204


def run(client: httpx.Client, sandbox: dict[str, Any], code: str) -> dict[str, Any]:
    answer = client.post(f"/v1/sandboxes/{sandbox['id']}/runs", json={"code": code, "timeout_ms": 900_000}, timeout=900)
    assert answer.status_code == 200, answer.text
    return answer.json()


def words(ended: dict[str, Any]) -> list[str]:
    assert ended["end_reason"] == "ok", ended
    return ended["stdout"]["text"].split()


@pytest.mark.parametrize("path", ["/home/user/big", "/tmp/big", "/var/tmp/big"])
def test_r07_the_disk_fills(path: str, client: httpx.Client, canary: dict[str, Any]) -> None:
    sandbox = create_sandbox(client, disk_mb=DISK_MB)
    ended, wrote = words(run(client, sandbox, FILL.format(path=path)))
    assert ended in ("EDQUOT", "ENOSPC")
    assert DISK_MB * 0.8 <= int(wrote) <= DISK_MB, "the limit is hard, and most of it is usable"
    # It goes on living: with room again, it writes again.
    again = run(client, sandbox, f"import os; os.remove({path!r}); print(open('/tmp/new', 'w').write('x' * 1000))")
    assert again["stdout"]["text"] == "1000\n"
    assert client.delete(f"/v1/sandboxes/{sandbox['id']}").status_code == 204


def test_r08_names_fill_a_tmpfs_before_memory_does(client: httpx.Client, canary: dict[str, Any]) -> None:
    sandbox = create_sandbox(client, memory_mb=256)
    code = "import os; os.chdir('/dev/shm')\n" + FILL_NAMES.format(name="str(made)", ballast_mb=0)
    assert words(run(client, sandbox, code))[0] == "ENOSPC"
    assert run(client, sandbox, "print(1)")["stdout"]["text"] == "1\n"
    assert client.delete(f"/v1/sandboxes/{sandbox['id']}").status_code == 204


@pytest.mark.parametrize("path", ["/dev/shm/big", "/run/big"])
def test_r05_a_tmpfs_fills_before_memory_does(path: str, client: httpx.Client, canary: dict[str, Any]) -> None:
    sandbox = create_sandbox(client, memory_mb=256)
    ended = run(client, sandbox, FILL.format(path=path))
    assert words(ended)[0] in ("ENOSPC", "EACCES"), "never a memory kill (or, for /run, no right to write)"
    assert run(client, sandbox, "print(1)")["stdout"]["text"] == "1\n"
    assert client.delete(f"/v1/sandboxes/{sandbox['id']}").status_code == 204


@pytest.mark.parametrize(
    ("command", "most"),
    [
        ("i=0; while true > /dev/full-$i; do i=$((i + 1)); done 2>/dev/null; echo $i", 128),
        ("i=0; while true > /run/full-$i; do i=$((i + 1)); done 2>/dev/null; echo $i", 4096),
        ("head -c 100M /dev/zero > /run/big 2>/dev/null; stat -c %s /run/big", 16 << 20),
    ],
)
def test_r08_root_inside_fills_no_tmpfs_beyond_its_bound(
    command: str, most: int, client: httpx.Client, canary: dict[str, Any]
) -> None:
    sandbox = create_sandbox(client, memory_mb=256)
    done = run(client, sandbox, f"import subprocess\nsubprocess.run(['sudo', '-n', 'sh', '-c', {command!r}])")
    assert 0 < int(done["stdout"]["text"]) <= most, done
    assert run(client, sandbox, "print(1)")["stdout"]["text"] == "1\n"
    assert client.delete(f"/v1/sandboxes/{sandbox['id']}").status_code == 204


LONG_NAME = "str(made).ljust(255, 'n')"


@pytest.mark.parametrize(
    ("name", "ballast_mb"),
    [
        pytest.param("str(made)", 58, id="empty files"),
        pytest.param(LONG_NAME, 58, id="long names"),
        pytest.param("str(made)", 0, id="empty files, the whole disk", marks=pytest.mark.full),
        pytest.param(LONG_NAME, 0, id="long names, the whole disk", marks=pytest.mark.full),
    ],
)
def test_r08_names_fill_the_disk(
    name: str, ballast_mb: int, server: Service, client: httpx.Client, canary: dict[str, Any]
) -> None:
    """Names are metadata, and metadata is bounded with the rest. A ballast makes the short cases short."""
    sandbox = create_sandbox(client, disk_mb=64)
    ended, made = words(run(client, sandbox, FILL_NAMES.format(name=name, ballast_mb=ballast_mb)))
    assert ended in ("EDQUOT", "ENOSPC", "ENAMETOOLONG"), made
    begin = time.monotonic()
    assert client.delete(f"/v1/sandboxes/{sandbox['id']}").status_code == 204
    assert time.monotonic() - begin < DELETE_SECONDS
    assert not any(sandbox["id"] in name for name in server.subvolumes())


def test_what_was_accepted_is_not_lost_silently(client: httpx.Client, canary: dict[str, Any]) -> None:
    """Every byte that write() took is there after fsync(), or fsync() fails: with the disk full to the brim."""
    sandbox = create_sandbox(client, disk_mb=DISK_MB)
    code = """
import errno, os
taken = {}
full = 0
for number in range(100_000):
    name = f"/tmp/f{number}"
    data = bytes([number % 256]) * 100_000
    try:
        file = os.open(name, os.O_CREAT | os.O_WRONLY)
        wrote = os.write(file, data)
        os.close(file)
        taken[name] = data[:wrote]
    except OSError as error:
        assert error.errno in (errno.EDQUOT, errno.ENOSPC)
        full += 1
        if full == 50:
            break
failed = 0
for name in taken:
    file = os.open(name, os.O_RDWR)
    try:
        os.fsync(file)
    except OSError:
        failed += 1
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)
lost = sum(open(name, "rb").read() != data for name, data in taken.items())
print(full, failed, lost, len(taken))
"""
    full, failed, lost, taken = map(int, words(run(client, sandbox, code)))
    assert full == 50
    assert taken > 1000
    assert lost <= failed
    assert client.delete(f"/v1/sandboxes/{sandbox['id']}").status_code == 204
