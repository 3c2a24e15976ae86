"""Rows `download` and `upload_durable`: a file out of a sandbox beside nginx, and into it beside `dd conv=fsync` into the
same subvolume. The client of both HTTP servers is curl."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench_service import BenchService
from rows import Row
from service import free_port

SIZE = 256 << 20
TURNS = 5
DD = "dd if=/dev/zero of=/home/user/by-dd bs=1M count={count} conv=fsync 2>&1"


class Download:
    NAME = "download"

    @staticmethod
    def measure(service: BenchService) -> Row:
        with sandbox(service) as made, nginx() as (peer_url, root):
            with (root / "file").open("wb") as file:
                fill(file)
            url = f"{service.url}/v1/sandboxes/{made['id']}/files?path=file"
            upload(service, made, root / "file")
            ours, theirs = [], []
            for _ in range(TURNS):
                ours.append(curl(service, url, "%{speed_download}"))
                theirs.append(curl(service, peer_url, "%{speed_download}"))
        return Row(
            name=Download.NAME, value=median(ours), unit="MB/s", goal=1500, peer="nginx", peer_value=median(theirs),
            detail={"ours": turns(ours), "nginx": turns(theirs)}, more_is_better=True,
        )  # fmt: skip


class Upload:
    NAME = "upload_durable"

    @staticmethod
    def measure(service: BenchService) -> Row:
        """Per cent of dd's rate."""
        ours, theirs = [], []
        with sandbox(service) as made, tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
            fill(file)
            file.flush()
            for _ in range(TURNS):
                theirs.append(dd(service, made))
                ours.append(upload(service, made, Path(file.name), "&durable=true"))
        return Row(
            name=Upload.NAME, value=100 * median(ours) / median(theirs), unit="%", goal=80, peer="dd conv=fsync",
            peer_value=100, detail={"ours, MB/s": turns(ours), "dd, MB/s": turns(theirs)}, more_is_better=True,
        )  # fmt: skip


@contextmanager
def sandbox(service: BenchService) -> Iterator[dict[str, Any]]:
    made = service.client.post("/v1/sandboxes", json={}).json()
    try:
        yield made
    finally:
        service.client.delete(f"/v1/sandboxes/{made['id']}")


def fill(file: Any) -> None:
    piece = os.urandom(1 << 20)
    for _ in range(SIZE >> 20):
        file.write(piece)


def curl(service: BenchService, url: str, what: str, *more: str) -> float:
    """MB a second, as curl counts it."""
    key = f"Authorization: Bearer {service.key}"
    command = ["curl", "-sf", "-H", key, "-o", "/dev/null", "-w", what, *more, url]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout) / 1e6


def upload(service: BenchService, made: dict[str, Any], file: Path, more: str = "") -> float:
    url = f"{service.url}/v1/sandboxes/{made['id']}/files?path=file{more}"
    return curl(service, url, "%{speed_upload}", "-T", str(file))


def dd(service: BenchService, made: dict[str, Any]) -> float:
    """The same number of bytes, in the sandbox and so in its subvolume."""
    body = {"language": "bash", "code": DD.format(count=SIZE >> 20)}
    text = service.client.post(f"/v1/sandboxes/{made['id']}/runs", json=body).json()["stdout"]["text"]
    seconds = re.search(r"copied, ([\d.]+) s", text)
    if seconds is None:
        raise RuntimeError(f"dd says {text!r}")
    return SIZE / float(seconds[1]) / 1e6


@contextmanager
def nginx() -> Iterator[tuple[str, Path]]:
    """A stock nginx that serves one directory: its URL, and the directory."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="cl-nginx-") as place:
        root = Path(place, "root")
        root.mkdir()
        Path(place).chmod(0o755)
        settings = Path(place, "nginx.conf")
        settings.write_text(
            f"daemon off; pid {place}/pid; error_log {place}/log;\nevents {{}}\n"
            f"http {{ access_log off; sendfile on; server {{ listen 127.0.0.1:{port}; root {root}; }} }}\n"
        )
        process = subprocess.Popen([nginx_program(), "-c", str(settings), "-p", place])
        try:
            yield f"http://127.0.0.1:{port}/file", root
        finally:
            process.terminate()
            process.wait(10)


def nginx_program() -> str:
    """Debian's, unpacked into the cache at its first use unless it is installed."""
    installed = shutil.which("nginx", path="/usr/sbin:/usr/bin")
    if installed:
        return installed
    place = Path(os.environ.get("CLOISTER_CACHE", "/var/cache/cloister")) / "bench-nginx"
    program = place / "usr/sbin/nginx"
    if not program.exists():
        place.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", "-q", "nginx"], cwd=place, check=True)
        (package,) = place.glob("nginx_*.deb")
        subprocess.run(["dpkg", "-x", str(package), str(place)], check=True)
    return str(program)


def median(rates: list[float]) -> float:
    return sorted(rates)[len(rates) // 2]


def turns(rates: list[float]) -> dict[str, float]:
    return {f"turn {i}": round(rate) for i, rate in enumerate(rates)}
