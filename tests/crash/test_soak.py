"""Cycles of create, run and kill leave everything where it was: descriptors, mounts, cgroups, files, processes, memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from conftest import create_sandbox, new_client
from service import Build, Process, Service, running, wait_until

PROGRAMS = ("cloister", "cloisterd", "cloister-egress", "cloister-warden")
# AddressSanitizer keeps what was freed for a while: here so much, that it does not hide what the programs keep. With
# what it notes about each block that is at most SANITIZER_KEEPS_MB.
QUARANTINE_MB = 16
SANITIZER_KEEPS_MB = 64
MEMORY_MAY_GROW_MB = 16


@dataclasses.dataclass
class Counts:
    descriptors: dict[str, int]
    memory_mb: dict[str, int]
    mounts: int
    cgroups: int
    subvolumes: int
    processes: int
    sockets: int

    @classmethod
    def of(cls, server: Service) -> Counts:
        programs = {name: server.program(name) for name in PROGRAMS}
        warden = programs["cloister-warden"].pid
        return cls(
            descriptors={name: descriptors(process) for name, process in programs.items()},
            memory_mb={name: memory_mb(process) for name, process in programs.items()},
            mounts=len(Path(f"/proc/{warden}/mountinfo").read_text().splitlines()),
            cgroups=sum(1 for top in server.cgroups() for path in top.rglob("*") if path.is_dir()),
            subvolumes=len(server.subvolumes()),
            processes=len(server.programs()),
            sockets=len(list(server.data.rglob("*.sock"))),
        )

    def same(self, other: Counts) -> bool:
        return dataclasses.replace(self, memory_mb={}) == dataclasses.replace(other, memory_mb={})


@pytest.fixture(scope="module")
def server(build: Build) -> Iterator[Service]:
    service = Service(build)
    service.asan_options = f"quarantine_size_mb={QUARANTINE_MB}"
    with running(service):
        yield service


@pytest.fixture(scope="module")
def client(server: Service) -> Iterator[httpx.Client]:
    with new_client(server, Authorization=f"Bearer {server.key}") as http:
        yield http


def descriptors(process: Process) -> int:
    return len(list(Path(f"/proc/{process.pid}/fd").iterdir()))


def memory_mb(process: Process) -> int:
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) // 1024


def cycle(client: httpx.Client, number: int) -> None:
    """Every third sandbox is killed in the middle of a run."""
    sandbox = create_sandbox(client)
    code = "open('big', 'wb').write(bytes(1 << 20)); print('done')"
    if number % 3 == 0:
        body = {"code": "import time; time.sleep(60)", "wait": False}
        client.post(f"/v1/sandboxes/{sandbox['id']}/runs", json=body).raise_for_status()
    else:
        done = client.post(f"/v1/sandboxes/{sandbox['id']}/runs", json={"code": code}).json()
        assert done["stdout"]["text"] == "done\n"
    assert client.delete(f"/v1/sandboxes/{sandbox['id']}").status_code == 204


@pytest.mark.parametrize("cycles", [50, pytest.param(500, marks=pytest.mark.full)])
def test_cycles_leave_nothing(
    cycles: int, server: Service, client: httpx.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(6):  # what is made at first use is there before it is counted
        cycle(client, number)
    before = Counts.of(server)
    for number in range(cycles):
        cycle(client, number)
    wait_until(lambda: Counts.of(server).same(before), 20, f"the counts are again {before}, now {Counts.of(server)}")
    after = Counts.of(server)
    with capsys.disabled():
        print(f"\n{cycles} cycles\n  before {before}\n  after  {after}")
    sanitized = "asan" in str(server.build.bin)
    room = MEMORY_MAY_GROW_MB + (SANITIZER_KEEPS_MB if sanitized else 0)
    for name in PROGRAMS:
        assert after.memory_mb[name] <= before.memory_mb[name] + room, name
