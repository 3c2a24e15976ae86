"""What programs believe the machine to be: the sandbox's own limits, whatever they ask."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from conftest import Run, create_sandbox

MEMORY_MB = 512


@pytest.fixture(scope="module")
def small(client: httpx.Client) -> Iterator[Run]:
    """run(code) in a sandbox with one CPU and half a gigabyte."""
    made = create_sandbox(client, memory_mb=MEMORY_MB, cpu=1)
    url = f"/v1/sandboxes/{made['id']}"

    def call(code: str, **fields: Any) -> dict[str, Any]:
        answer = client.post(f"{url}/runs", json={"code": code, **fields})
        assert answer.status_code == 200, answer.text
        return answer.json()

    yield call
    client.delete(url)


def output_of(run: Run, *command: str) -> str:
    code = f"import subprocess\nprint(subprocess.run({list(command)!r}, capture_output=True, text=True, check=True).stdout)"
    done = run(code)
    assert done["end_reason"] == "ok", done
    return done["stdout"]["text"]


def value_of(run: Run, expression: str, imports: str = "os") -> Any:
    done = run(f"import json, {imports}\nprint(json.dumps({expression}))")
    assert done["end_reason"] == "ok", done
    return json.loads(done["stdout"]["text"])


def test_free(small: Run) -> None:
    lines = [line.split() for line in output_of(small, "free", "-m").splitlines() if line]
    memory, swap = lines[1], lines[2]
    assert memory[:2] == ["Mem:", str(MEMORY_MB)]
    total, used, free, _, cache, available = map(int, memory[1:])
    assert 0 < used < total and free < total and available <= total and free + cache <= total
    assert swap == ["Swap:", "0", "0", "0"]


def test_nproc_and_affinity(small: Run) -> None:
    assert output_of(small, "nproc").strip() == "1"
    assert output_of(small, "nproc", "--all").strip() == "1"
    assert value_of(small, "[os.cpu_count(), len(os.sched_getaffinity(0))]") == [1, 1]
    assert value_of(small, "open('/proc/cpuinfo').read().count('processor\\t')") == 1


def test_as_many_cpus_as_the_host_has(client: httpx.Client) -> None:
    """Of more CPUs than the host has, those that it has."""
    made = create_sandbox(client, cpu=64)
    code = "import os; print(os.cpu_count(), len(os.sched_getaffinity(0)))"
    done = client.post(f"/v1/sandboxes/{made['id']}/runs", json={"code": code}).json()
    client.delete(f"/v1/sandboxes/{made['id']}")
    here = min(64, len(os.sched_getaffinity(0)))
    assert done["stdout"]["text"] == f"{here} {here}\n"


def test_top(small: Run) -> None:
    lines = output_of(small, "top", "-bn1").splitlines()
    assert lines[0].startswith("top -") and " min, " in lines[0].partition(" up ")[2], lines[0]
    memory = next(line for line in lines if "Mem :" in line)
    total = float(memory.split(":")[1].split()[0])
    assert total == pytest.approx(MEMORY_MB, abs=1), memory
    assert any(line.split()[-1:] == ["top"] for line in lines), "it lists itself"


def test_node(small: Run) -> None:
    script = "const os = require('os'); console.log(os.cpus().length, os.totalmem(), os.freemem() < os.totalmem(), os.uptime() < 600)"
    assert output_of(small, "node", "-e", script).split() == ["1", str(MEMORY_MB << 20), "true", "true"]


def test_as_psutil_reads_it(small: Run) -> None:
    code = "{line.split(':')[0]: int(line.split()[1]) * 1024 for line in open('/proc/meminfo')}"
    memory = value_of(small, code)
    assert memory["MemTotal"] == MEMORY_MB << 20
    assert {"MemFree", "MemAvailable", "Buffers", "Cached", "Active", "Inactive", "Shmem", "SReclaimable"} <= set(memory)
    stat = value_of(small, "open('/proc/stat').read()").splitlines()
    for word in ("cpu ", "cpu0 ", "ctxt ", "intr ", "softirq ", "btime ", "procs_running ", "procs_blocked "):
        assert any(line.startswith(word) for line in stat), word
    assert not any(line.startswith("cpu1 ") for line in stat)


def test_memory_follows_what_is_used(small: Run) -> None:
    code = """
import time
def figures():
    lines = dict(line.split(":") for line in open("/proc/meminfo"))
    return [int(lines[name].split()[0]) >> 10 for name in ("AnonPages", "MemAvailable")]
anonymous, available = figures()
hog = b"x" * (200 << 20)
deadline = time.monotonic() + 60
while figures()[0] - anonymous < 190 and time.monotonic() < deadline: time.sleep(0.05)
now = figures()
print(190 <= now[0] - anonymous <= 260, available - now[1] >= 150)
del hog
"""
    assert small(code)["stdout"]["text"] == "True True\n"


def test_time_goes_on_and_load_rises(small: Run) -> None:
    """However little of the machine it gets: the figures are held against the process's own clocks."""
    code = """
import time
def uptime(): return float(open("/proc/uptime").read().split()[0])
def ticks(): return sum(map(int, open("/proc/stat").readline().split()[1:4]))
up, used, begin, burnt = uptime(), ticks(), time.monotonic(), time.process_time()
while ticks() - used < 60 and time.monotonic() < begin + 60: pass
passed, burnt = time.monotonic() - begin, time.process_time() - burnt
print(ticks() - used >= 60, burnt >= 0.3, abs(uptime() - up - passed) < 3)
print(float(open("/proc/loadavg").read().split()[0]) > 0)
print(abs(time.time() - next(int(l.split()[1]) for l in open("/proc/stat") if l.startswith("btime")) - uptime()) < 5)
"""
    assert small(code)["stdout"]["text"] == "True True True\nTrue\nTrue\n"


def test_a_sandbox_is_as_old_as_it_is(sandbox: dict[str, Any], run: Run) -> None:
    assert value_of(run, "float(open('/proc/uptime').read().split()[0])") < 60


def test_processes_are_as_old_as_they_are(small: Run) -> None:
    ages = [int(age) for age in output_of(small, "ps", "-eo", "etimes=").split()]
    assert ages and max(ages) < 600, ages


def test_the_figures_cannot_be_changed(small: Run) -> None:
    for name in ("meminfo", "cpuinfo", "stat", "uptime", "loadavg"):
        shell = f"echo x > /proc/{name} || umount /proc/{name} || rm /proc/{name} || sudo sh -c 'echo x > /proc/{name}'"
        assert small(f"import subprocess; print(subprocess.run(['sh', '-c', {shell!r}], capture_output=True).returncode != 0)")[
            "stdout"
        ]["text"] == "True\n"
