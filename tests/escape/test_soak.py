"""Nothing grows: hundreds of sandboxes are made, used and killed, and the host is as it was."""

from __future__ import annotations

import resource
from pathlib import Path

import httpx
import pytest
from canary import FDS_SLACK, SETTLE_SECONDS, Traces
from conftest import create_sandbox
from service import Service, wait_until

WARM_UP = 20
GROWTH_BYTES = 24 << 20  # of a program's memory: allocators keep what they once had


def memory_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


def memory(server: Service) -> dict[str, int]:
    return {name: memory_of(server.program(name).pid) for name in ("cloisterd", "cloister-warden")}


def cycle(client: httpx.Client, number: int) -> None:
    """A sandbox with a run; every third is killed in the middle of one."""
    sandbox = create_sandbox(client)["id"]
    done = client.post(f"/v1/sandboxes/{sandbox}/runs", json={"code": f"print({number})"}).json()
    assert done["stdout"]["text"] == f"{number}\n", done
    if number % 3 == 0:
        code = "import time; open('/tmp/x', 'wb').write(bytes(1 << 20)); time.sleep(60)"
        client.post(f"/v1/sandboxes/{sandbox}/runs", json={"code": code, "wait": False})
    assert client.delete(f"/v1/sandboxes/{sandbox}").status_code == 204


def soak(server: Service, client: httpx.Client, cycles: int) -> None:
    for number in range(WARM_UP):
        cycle(client, number)
    before, memory_before = Traces.of(server), memory(server)
    for number in range(cycles):
        cycle(client, number)
    wait_until(lambda: not before.left_in(Traces.of(server)), SETTLE_SECONDS, "nothing is left")
    after, memory_after = Traces.of(server), memory(server)
    print(f"\n{cycles} cycles           before   after")
    for what in ("processes", "mounts"):
        print(f"  {what:20} {getattr(before, what):7} {getattr(after, what):7}")
    for what in ("cgroups", "pool", "files"):
        print(f"  {what:20} {len(getattr(before, what)):7} {len(getattr(after, what)):7}")
    for name in before.fds:
        print(f"  {'fds of ' + name[9:]:20} {before.fds[name]:7} {after.fds[name]:7}")
        print(f"  {'MiB of ' + name[9:]:20} {memory_before[name] >> 20:7} {memory_after[name] >> 20:7}")
    assert all(after.fds[name] <= before.fds[name] + FDS_SLACK for name in before.fds)
    grown = {name: memory_after[name] - memory_before[name] for name in memory_before}
    assert all(growth < GROWTH_BYTES for growth in grown.values()), grown


def test_a_short_soak(server: Service, client: httpx.Client) -> None:
    soak(server, client, 20)


@pytest.mark.full
def test_five_hundred_cycles(server: Service, client: httpx.Client) -> None:
    soak(server, client, 500)
