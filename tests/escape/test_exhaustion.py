"""Group R: eating what there is. Each run ends with what stopped it; the sandbox goes on, the neighbour too.

What makes a full disk is in test_disk.py, too, and what must end by its timeout in test_ladder.py.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from attacks import Attacked
from canary import Traces, told, typed_end
from service import Service, processes_in_group, wait_until

# How much longer than its timeout a run may last (design §7).
LADDER_MS = 1000


def assert_on_time(done: dict[str, Any], timeout_ms: int) -> None:
    """It ended by its timeout, within a second of it, and what it had printed is there."""
    assert typed_end(done) == "timeout", told(done)
    wall = done["metrics"]["wall_ms"]
    assert timeout_ms <= wall <= timeout_ms + LADDER_MS, f"it lasted {wall} ms with a timeout of {timeout_ms} ms"
    assert done["stdout"]["text"].startswith("begun"), told(done)


def test_r01_fork_bomb(attacked: Attacked) -> None:
    done = attacked.program("fork_bomb")
    assert typed_end(done) == "pids_limit", told(done)
    attacked.works_again()


def test_r01_fork_bomb_in_the_interpreter(attacked: Attacked) -> None:
    done = attacked.cell("fork_bomb_in_place")
    assert typed_end(done) == "pids_limit", told(done)
    attacked.works_again()


def test_r02_daemons_end_with_their_sandbox(attacked: Attacked) -> None:
    done = attacked.cell("daemons")
    assert typed_end(done) == "ok" and "daemons 20" in done["stdout"]["text"], told(done)
    assert len(processes_in_group(attacked.id)) > 200
    attacked.works_again()
    begin = time.monotonic()
    attacked.delete()
    wait_until(lambda: not processes_in_group(attacked.id), 5, "the daemons are gone")
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize("argv", [[], ["memfd"]], ids=["heap", "memfd"])
def test_r03_r06_memory_bomb(argv: list[str], small: Attacked) -> None:
    done = small.cell("memory_bomb", *argv)
    assert typed_end(done) == "oom", told(done)
    assert done["state_lost"] and done["stdout"]["text"].startswith("begun"), told(done)
    assert done["metrics"]["memory_peak_bytes"] <= 256 << 20
    small.works_again()


def test_r03_memory_bomb_of_many_processes(small: Attacked) -> None:
    """All of them die at once: a sandbox of which only one process was killed is in a state that nobody knows."""
    done = small.program("memory_bomb")
    assert typed_end(done) == "oom", told(done)
    small.works_again()
    code = "import os; print(sum(os.path.exists(f'/proc/{p}/exe') for p in os.listdir('/proc') if p.isdigit()))"
    assert int(small.run(code)["stdout"]["text"]) <= 2, "processes of the bomb are still there"


@pytest.mark.parametrize(
    ("kind", "reasons"),
    [("python", {"error", "oom", "kernel_died"}), ("c", {"error", "oom", "kernel_died"}), ("node", {"error"})],
)
def test_r04_deep_recursion(kind: str, reasons: set[str], small: Attacked) -> None:
    done = small.cell("recursion", kind)
    assert typed_end(done) in reasons, told(done)
    assert done["state_lost"] == (done["end_reason"] in ("oom", "kernel_died")), told(done)
    if kind == "node":
        assert "RangeError" in done["stdout"]["text"], told(done)
    small.works_again()


def test_r04_deep_c_stack(small: Attacked) -> None:
    done = small.program("deep_stack")
    assert (typed_end(done), done["exit_code"]) == ("error", 128 + 11), told(done)
    small.works_again()


@pytest.mark.parametrize("place", ["/tmp", "/var/tmp", "/dev/shm", "/home/user"])
def test_r05_r07_filling_the_disk(place: str, small: Attacked) -> None:
    done = small.cell("fill", place)
    assert typed_end(done) == "disk_full", told(done)
    assert done["error"]["name"] == "OSError" and not done["state_lost"], told(done)
    small.works_again()


@pytest.mark.complaint(16)
@pytest.mark.parametrize("who", ["user", "root"])
def test_r05_every_writable_place_is_bounded(who: str, small: Attacked) -> None:
    done = small.program("fill", "everywhere", who=who)
    assert typed_end(done) == "ok", told(done)
    ends = re.findall(r"^(\S+): (\d+) MiB until (\w+)$", done["stdout"]["text"], re.MULTILINE)
    assert {"/", "/dev/shm"} <= {place for place, _, _ in ends} | {"/"} and len(ends) >= 1, told(done)
    assert {error for _, _, error in ends} <= {"ENOSPC", "EDQUOT", "EACCES", "EPERM"}, ends
    assert all(int(mib) <= 256 for _, mib, _ in ends), ends
    small.works_again()


def test_r06_buffers_of_pipes_and_sockets(small: Attacked) -> None:
    """Kernel memory counts: the run is killed for it, or is refused more before that."""
    for kind in ("pipes", "sockets"):
        done = small.program("socket_buffers", kind)
        assert typed_end(done) in ("ok", "error", "oom"), told(done)
        assert done["metrics"]["memory_peak_bytes"] <= 256 << 20
        small.works_again()


def test_r07_a_full_sandbox_fills_nothing_else(small: Attacked, server: Service) -> None:
    """The host's disk keeps what it had, since the pool took its blocks at birth; and others go on writing."""

    def free() -> int:
        status = os.statvfs(server.data)
        return status.f_bavail * status.f_frsize

    before = free()
    kept = "f = open('big', 'wb', buffering=0)\nwhile True: f.write(bytes(1 << 20))"
    assert typed_end(small.run(kept)) == "disk_full"
    assert before - free() < 512 << 20, "other programs of this machine write, too, but not so much"
    other = Attacked(small.client)
    assert typed_end(other.run("open('mine', 'wb').write(bytes(4 << 20))")) == "ok"
    other.delete()
    freed = small.run("import os; f.close(); os.unlink('big'); open('again', 'wb').write(bytes(1 << 20))")
    assert typed_end(freed) == "ok", told(freed)


def test_r09_descriptors(attacked: Attacked, server: Service) -> None:
    before = Traces.of(server).fds
    done = attacked.program("descriptors")
    assert typed_end(done) == "ok" and "until EMFILE" in done["stdout"]["text"], told(done)
    assert re.search(r"in flight until (ETOOMANYREFS|EAGAIN|ENOBUFS)", done["stdout"]["text"]), told(done)
    after = Traces.of(server).fds
    assert all(after[name] <= before[name] + 8 for name in before), (before, after)
    refused = attacked.cell("descriptors", "raise")
    assert (typed_end(refused), refused["error"]["name"]) == ("error", "OSError"), told(refused)
    attacked.run("kept.clear()")
    attacked.works_again()


@pytest.mark.parametrize("kind", ["blocks", "child ignores"])
def test_r13_code_that_ignores_signals(kind: str, attacked: Attacked) -> None:
    assert_on_time(attacked.cell("stubborn", kind, timeout_ms=1500), 1500)
    attacked.works_again()
    assert len(processes_in_group(attacked.id)) <= 3, "what the run started ends with its timeout"


@pytest.mark.complaint(11)
def test_r14_a_loop_in_c(attacked: Attacked) -> None:
    done = attacked.cell("stubborn", "in C", timeout_ms=1500)
    assert_on_time(done, 1500)
    assert done["state_lost"], "the interpreter had to be killed"
    attacked.works_again()


@pytest.mark.complaint(12)
def test_r15_zombies(attacked: Attacked) -> None:
    done = attacked.program("zombies", timeout_ms=120_000)
    assert typed_end(done) == "ok", told(done)
    children = re.search(r"children (\d+) until EAGAIN", done["stdout"]["text"])
    assert children and int(children[1]) < 512, told(done)
    assert "orphans 10000" in done["stdout"]["text"]
    attacked.works_again()
    assert len(processes_in_group(attacked.id)) <= 3


@pytest.mark.parametrize("kind", ["stops its group"])
def test_r16_code_that_stops_everything(kind: str, attacked: Attacked) -> None:
    assert_on_time(attacked.cell("stubborn", kind, timeout_ms=1500), 1500)
    attacked.works_again()


# What the run ends with; `error` where the attempt only fails.
KILLS = {
    "agent": {"ok", "error"},
    "all": {"ok"},
    "parent": {"ok", "error"},
    "itself": {"kernel_died"},
    "exit": {"kernel_died"},
    "exec": {"kernel_died"},
}


@pytest.mark.parametrize("kind", KILLS)
def test_r17_killing(kind: str, attacked: Attacked) -> None:
    done = attacked.cell("kills", kind)
    assert typed_end(done) in KILLS[kind], told(done)
    assert done["stdout"]["text"].startswith("begun")
    if kind == "exit":
        assert done["exit_code"] == 7
    attacked.works_again()


@pytest.mark.parametrize("kind", ["agent", "all", "parent"])
def test_r17_killing_as_root(kind: str, attacked: Attacked) -> None:
    """Root of a sandbox may kill what runs in it, but not the agent, which then says what happened."""
    done = attacked.program("kills", kind, who="root")
    assert typed_end(done) in ({"kernel_died"} if kind == "all" else {"ok", "error"}), told(done)
    assert "begun" in done["stdout"]["text"], told(done)
    attacked.works_again()


@pytest.mark.complaint(3)
@pytest.mark.parametrize("kind", ["closes 0 to 2", "closes all", "covers all", "talks nonsense", "cuts a character"])
def test_r18_taking_the_pipes_away(kind: str, attacked: Attacked) -> None:
    done = attacked.cell("kills", kind)
    assert typed_end(done) in ("ok", "error", "kernel_died"), told(done)
    assert done["metrics"]["wall_ms"] < 10_000, "the agent must notice at once"
    attacked.works_again()


PIDS = 500
RESERVED_PIDS = 300  # numbers that the kernel does not give again


def has_pid_limits_of_its_own() -> bool:
    """From Linux 6.14 on pid_max belongs to a pid namespace; only so can the numbers of a sandbox be made scarce."""
    major, minor = os.uname().release.split(".")[:2]
    return (int(major), int(minor)) >= (6, 14)


def set_pid_max(sandbox: str, number: int) -> None:
    first = min(processes_in_group(sandbox))
    command = ["nsenter", "-t", str(first), "-p", "sh", "-c", f"echo {number} > /proc/sys/kernel/pid_max"]
    subprocess.run(command, check=True)


@pytest.mark.here(has_pid_limits_of_its_own, "R19 (pid reuse): the kernel is older than 6.14")
def test_r19_a_stranger_with_the_pid_of_a_dead_interpreter(attacked: Attacked) -> None:
    host_pid_max = Path("/proc/sys/kernel/pid_max").read_text()
    set_pid_max(attacked.id, PIDS)
    assert Path("/proc/sys/kernel/pid_max").read_text() == host_pid_max
    attacked.run(f"import subprocess\nfor _ in range({RESERVED_PIDS}): subprocess.run('/usr/bin/true')")
    assert typed_end(attacked.cell("kills", "itself")) == "kernel_died"
    pid = int(attacked.run("import os; print(os.getpid())")["stdout"]["text"])
    assert pid >= RESERVED_PIDS
    assert typed_end(attacked.cell("kills", "itself")) == "kernel_died"
    taken = attacked.program("take_pid", str(pid))
    assert "taken after" in taken["stdout"]["text"], told(taken)
    # Every way in which the agent signals an interpreter: the stranger must not feel it.
    late = attacked.cell("stubborn", "blocks", timeout_ms=1000)
    assert typed_end(late) == "timeout", told(late)
    alive = attacked.run(f"import os; os.kill({pid}, 0); print(open('/proc/{pid}/stat').read().split()[2])")
    assert alive["stdout"]["text"].strip() == "S", told(alive)


def test_r20_cpu_hog(attacked: Attacked) -> None:
    box = Attacked(attacked.client, cpu=1)
    done = box.program("cpu_hog")
    assert typed_end(done) == "ok", told(done)
    lines = dict(line.split("\t") for line in done["stdout"]["text"].splitlines() if "\t" in line)
    assert all(result in ("EPERM", "EACCES") for result in lines.values()) and len(lines) == 5, lines
    metrics = done["metrics"]
    assert metrics["cpu_ms"] <= 1.2 * metrics["wall_ms"] + 200, f"more than the one CPU it has: {metrics}"
    box.works_again()
    box.delete()
