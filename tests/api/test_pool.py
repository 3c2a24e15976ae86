"""The pool: who sees what of it, growing it while sandboxes live, and a host disk that fills around it."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import Cli, create_sandbox, new_client
from service import POOL_BYTES, Build, Service, running

MB = 1 << 20


def disk_of(client: httpx.Client, sandbox: dict[str, Any]) -> dict[str, Any]:
    rows = client.get("/v1/pool").json()["sandboxes"]
    return next(row for row in rows if row["id"] == sandbox["id"])


def write(client: httpx.Client, sandbox: dict[str, Any], megabytes: int, name: str = "big") -> None:
    code = f"""
import os
with open('/home/user/{name}', 'wb') as file:
    for _ in range({megabytes}):
        file.write(os.urandom(1 << 20))
    file.flush()
    os.fsync(file.fileno())
print('written')
"""
    done = client.post(f"/v1/sandboxes/{sandbox['id']}/runs", json={"code": code}).json()
    assert done["stdout"]["text"] == "written\n", done


def test_it_says_who_holds_what(client: httpx.Client, sandbox: dict[str, Any]) -> None:
    before = disk_of(client, sandbox)
    write(client, sandbox, 20)
    after = disk_of(client, sandbox)
    pool = client.get("/v1/pool").json()
    assert after["max_bytes"] == sandbox["disk_mb"] * MB
    assert 20 * MB <= after["used_bytes"] - before["used_bytes"] <= 24 * MB
    assert pool["bytes"] == pool["used_bytes"] + pool["free_bytes"]
    assert pool["template_bytes"] > 100 * MB
    assert pool["used_bytes"] >= pool["template_bytes"]


def test_df_shows_the_same(client: httpx.Client, sandbox: dict[str, Any], cli: Cli) -> None:
    shown = json.loads(cli("df", "--json").stdout)
    assert shown.keys() == client.get("/v1/pool").json().keys()
    text = cli("df").stdout
    assert text.startswith("pool       ")
    assert f"{sandbox['id']}  " in text
    assert cli("df", "--colour").returncode == 2


@pytest.mark.parametrize(
    ("size", "code", "says"),
    [
        ("1G", 2, "larger"),
        ("lots", 2, "20G"),
        ("0.5P", 2, "20G"),
        ("900T", 75, "free"),
    ],
)
def test_a_size_that_cannot_be(size: str, code: int, says: str, cli: Cli) -> None:
    refused = cli("pool", "grow", size)
    assert refused.returncode == code, refused.stderr
    assert says in refused.stderr


def test_without_a_service_it_says_so(cli: Cli, tmp_path: Path) -> None:
    refused = cli("pool", "grow", "20G", CLOISTER_DATA=str(tmp_path))
    assert refused.returncode == 69
    assert "cloister serve" in refused.stderr


@pytest.fixture(scope="module")
def small_disk() -> Iterator[Path]:
    """A file system of its own for a data directory, little larger than the pool in it."""
    place = Path(tempfile.mkdtemp(prefix="cl-disk-", dir="/tmp"))
    image = place.with_suffix(".img")
    with image.open("wb") as file:
        file.truncate(POOL_BYTES + 3 * 1024 * MB)
    try:
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", str(image)], check=True)
        subprocess.run(["mount", "-o", "loop", str(image), str(place)], check=True)
        place.chmod(0o711)
        yield place
        subprocess.run(["umount", str(place)], check=True)
    finally:
        image.unlink()
        place.rmdir()


@pytest.fixture(scope="module")
def cramped(build: Build, small_disk: Path) -> Iterator[Service]:
    """A service whose data directory lies on that disk."""
    with running(Service(build, parent=str(small_disk))) as service:
        yield service


def grow(service: Service, size: str) -> subprocess.CompletedProcess[str]:
    command = [service.build.program("cloister"), "pool", "grow", size]
    return subprocess.run(command, env=service.environment(), capture_output=True, text=True, timeout=120)


def test_it_grows_while_sandboxes_live(cramped: Service) -> None:
    with new_client(cramped, Authorization=f"Bearer {cramped.key}") as client:
        sandbox = create_sandbox(client)
        before = client.get("/v1/pool").json()["bytes"]
        grown = grow(cramped, f"{POOL_BYTES // MB + 512}M")
        assert grown.returncode == 0, grown.stderr
        assert client.get("/v1/pool").json()["bytes"] == before + 512 * MB
        image = os.stat(cramped.data / "pool.img")
        assert image.st_blocks * 512 >= image.st_size, "every block is taken from the host"
        write(client, sandbox, 50)
        cramped.kill("cloister-warden")
        assert client.get("/v1/pool").json()["bytes"] == before + 512 * MB, "for the next warden, too"
        write(client, sandbox, 10, "more")
        too_much = grow(cramped, f"{POOL_BYTES // MB + 2800}M")
        assert too_much.returncode == 75
        assert "for itself" in too_much.stderr
        assert client.delete(f"/v1/sandboxes/{sandbox['id']}").status_code == 204


def test_a_host_disk_that_fills_does_not_hurt_it(cramped: Service, small_disk: Path) -> None:
    """Only the database's few pages are left free outside; 600 MB still go into the pool, and stay."""
    with new_client(cramped, Authorization=f"Bearer {cramped.key}") as client:
        sandbox = create_sandbox(client)
        filler = small_disk / "filler"
        space = os.statvfs(small_disk)
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, space.f_bavail * space.f_frsize - 32 * MB)
        try:
            write(client, sandbox, 600)
            one_more = create_sandbox(client)
            write(client, one_more, 20)
            code = "import os; print(os.path.getsize('/home/user/big') >> 20)"
            done = client.post(f"/v1/sandboxes/{sandbox['id']}/runs", json={"code": code}).json()
            assert done["stdout"]["text"] == "600\n"
            for made in (sandbox, one_more):
                assert client.delete(f"/v1/sandboxes/{made['id']}").status_code == 204
        finally:
            filler.unlink()
