"""The canary: a sandbox of another project that lives beside every attack, and what an attack may not leave behind.

    canary = Canary(client_of_another_project)     a heartbeat each second, and a file with a known hash
    before = Traces.of(server)
    …the attack…
    canary.check(); before.check_again(server)
"""

from __future__ import annotations

import dataclasses
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from conftest import create_sandbox
from service import Service, processes_in_group, wait_until

HEARTBEAT_SECONDS = 1.0
MISSED_SECONDS = 3.0  # a heartbeat that takes longer was missed
FILE = "canary.bin"
FILE_MIB = 16
# What ends in the background: the burial of a sandbox, and of the cgroups that were its.
SETTLE_SECONDS = 15
# Threads and caches of ours may hold a few descriptors more than before; what leaks grows with each test.
FDS_SLACK = 4

_MAKE_FILE = f"""
import hashlib, random
data = random.Random(7).randbytes({FILE_MIB} << 20)
open("{FILE}", "wb").write(data)
print(hashlib.sha256(data).hexdigest())
"""
_HASH_FILE = f'import hashlib; print(hashlib.sha256(open("{FILE}", "rb").read()).hexdigest())'


class Canary:
    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self.id: str = create_sandbox(client)["id"]
        self._hash = self.run(_MAKE_FILE)
        self._worst = 0.0
        self._faults: list[str] = []
        self._stop = threading.Event()
        self._heart = threading.Thread(target=self._beat, name="heartbeat")
        self._heart.start()

    def run(self, code: str) -> str:
        """What a cell prints; it must end `ok`."""
        done = self._client.post(f"/v1/sandboxes/{self.id}/runs", json={"code": code}).json()
        if done.get("end_reason") != "ok":
            raise AssertionError(f"the canary's run did not end ok: {done}")
        text: str = done["stdout"]["text"]
        return text.strip()

    def check(self) -> None:
        """Since the last check no heartbeat was missed, and the canary's file is as it was."""
        faults, self._faults = self._faults, []
        worst, self._worst = self._worst, 0.0
        assert not faults, f"the canary was harmed: {faults}"
        assert worst < MISSED_SECONDS, f"the canary waited {worst:.1f} s for one heartbeat"
        assert self.run(_HASH_FILE) == self._hash, "the canary's file has changed"

    def close(self) -> None:
        self._stop.set()
        self._heart.join()
        assert self._client.delete(f"/v1/sandboxes/{self.id}").status_code == 204

    def _beat(self) -> None:
        count = 0
        while not self._stop.wait(HEARTBEAT_SECONDS):
            count += 1
            begin = time.monotonic()
            try:
                if self.run(f"print({count})") != str(count):
                    self._faults.append(f"heartbeat {count} printed something else")
            except (AssertionError, httpx.HTTPError, KeyError) as error:
                self._faults.append(f"heartbeat {count}: {error}")
            self._worst = max(self._worst, time.monotonic() - begin)


@dataclasses.dataclass(frozen=True)
class Traces:
    """What sandboxes leave on a host while they live: as names where there are few, else as counts."""

    processes: int
    cgroups: frozenset[str]
    mounts: int  # in the warden's mount namespace
    pool: frozenset[str]  # subvolumes and directories at the top of the pool
    files: frozenset[str]  # sockets and temporary files in the data directory
    fds: dict[str, int]  # of our programs, without the HTTP connections

    @classmethod
    def of(cls, server: Service) -> Traces:
        warden = server.program("cloister-warden").pid
        return cls(
            processes=len(processes_in_group(server.group_name())),
            cgroups=frozenset(folder for top in server.cgroups() for folder, _, _ in os.walk(top)),
            mounts=len(Path(f"/proc/{warden}/mountinfo").read_text().splitlines()),
            pool=frozenset(pool_entries(server, warden)),
            files=frozenset(files_below(server.data / "run", server.data / "state")),
            fds={name: count_fds(server.program(name).pid) for name in ("cloisterd", "cloister-warden")},
        )

    def left_in(self, now: Traces) -> list[str]:
        """What is there now and was not before, in words."""
        left = [f"{now.processes - self.processes} processes"] if now.processes > self.processes else []
        left += [f"{now.mounts - self.mounts} mounts"] if now.mounts > self.mounts else []
        for what in ("cgroups", "pool", "files"):
            left += [f"{what}: {name}" for name in sorted(getattr(now, what) - getattr(self, what))]
        for name, count in now.fds.items():
            if count > self.fds[name] + FDS_SLACK:
                left.append(f"{count - self.fds[name]} descriptors of {name}")
        return left

    def check_again(self, server: Service) -> None:
        """Waits until all is as it was; an assertion that names what stays."""
        try:
            wait_until(lambda: not self.left_in(Traces.of(server)), SETTLE_SECONDS, "nothing is left")
        except TimeoutError:
            left = self.left_in(Traces.of(server))
            assert not left, f"left behind: {left}"


def files_below(*tops: Path) -> Iterator[str]:
    """Tolerates what vanishes while it looks."""
    for top in tops:
        for folder, _, names in os.walk(top):
            yield from (f"{folder}/{name}" for name in names)


def pool_entries(server: Service, warden: int) -> list[str]:
    """Names in the pool down to a sandbox's subvolumes; the pool is mounted for the warden alone."""
    pool = Path(f"/proc/{warden}/root{server.data}/run/pool")
    return [str(path.relative_to(pool)) for path in [*pool.glob("*"), *pool.glob("*/*")]]


def count_fds(pid: int) -> int:
    """Descriptors of a process, without its TCP connections: those belong to the clients of a test."""
    tcp = {line.split()[9] for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]}
    count = 0
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(link.readlink())
        except OSError:
            continue
        count += target.removeprefix("socket:[").removesuffix("]") not in tcp
    return count


def told(done: dict[str, Any]) -> str:
    """What matters of a run, for the message of an assertion."""
    streams = {name: done[name]["text"][-1500:] for name in ("stdout", "stderr") if name in done}
    words = ("end_reason", "exit_code", "message", "state_lost", "limits_hit", "error", "metrics")
    return json.dumps({word: done[word] for word in words if word in done} | streams, indent=1)


def typed_end(done: dict[str, Any]) -> str:
    """How a run ended; an assertion unless it ended exactly as the contract says: once, with its figures."""
    assert done["state"] == "ended", told(done)
    assert done["end_reason"] == "ok" or done["message"], told(done)
    assert {"wall_ms", "cpu_ms", "memory_peak_bytes", "output_bytes"} <= done["metrics"].keys(), told(done)
    reason: str = done["end_reason"]
    return reason
