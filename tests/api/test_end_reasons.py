"""How a run ends: each reason once, with the limit that fired, after all of its output, and what is left afterwards."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from conftest import Cli, Events, Run, create_sandbox

MIB = 1 << 20

MEMORY_BOMB = "print('before', flush=True)\nhog = []\nwhile True: hog.append(b'x' * (8 << 20))"
FORK_BOMB = """
import os, time
print('before', flush=True)
while True:
    if os.fork() == 0:
        time.sleep(60)
"""
DISK_FILLER = """
print('before', flush=True)
with open('/home/user/big', 'wb') as file:
    while True:
        file.write(bytes(1 << 20))
"""

# reason: code, fields of the run, exit code, name of the limit, its value (None: the sandbox's).
CASES: dict[str, tuple[str, dict[str, Any], int | None, str | None, int | None]] = {
    "ok": ("print('before')", {}, 0, None, None),
    "error": ("print('before'); 1/0", {}, 1, None, None),
    "timeout": ("print('before'); import time; time.sleep(60)", {"timeout_ms": 500}, 130, "timeout_ms", 500),
    "cpu_limit": ("print('before')\nwhile True: pass", {"cpu_time_ms": 300}, 130, "cpu_time_ms", 300),
    "output_limit": ("print('before')\nwhile True: print('x' * 1000)", {"output_max_bytes": 5000}, None, None, None),
    "kernel_died": ("print('before', flush=True); import os; os._exit(5)", {}, 5, None, None),
    "oom": (MEMORY_BOMB, {}, 137, "memory_max_bytes", 256 * MIB),
    "pids_limit": (FORK_BOMB, {"timeout_ms": 30_000, "pids": 40}, 1, "pids", 40),
    "disk_full": (DISK_FILLER, {}, 1, "disk_bytes", 64 * MIB),
}


@pytest.fixture
def small(client: httpx.Client) -> Any:
    """A sandbox whose limits are soon reached."""
    made = create_sandbox(client, memory_mb=256, disk_mb=64)
    yield made
    client.delete(f"/v1/sandboxes/{made['id']}")


def post(client: httpx.Client, sandbox: dict[str, Any], code: str, **fields: Any) -> dict[str, Any]:
    answer = client.post(f"/v1/sandboxes/{sandbox['id']}/runs", json={"code": code, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.complaint(13)
@pytest.mark.parametrize("reason", CASES)
def test_a_reason_with_its_limit(reason: str, client: httpx.Client, small: dict[str, Any]) -> None:
    code, fields, exit_code, limit, value = CASES[reason]
    done = post(client, small, code, **fields)
    assert done["end_reason"] == reason, done
    assert done["retryable"] is False, "it was the code's own doing"
    assert done["limits"] == {
        "timeout_ms": fields.get("timeout_ms", 300_000),
        "memory_max_bytes": 256 * MIB,
        "pids": fields.get("pids", 512),
        "disk_bytes": 64 * MIB,
        "output_max_bytes": fields.get("output_max_bytes", 256 * MIB),
    } | {key: fields[key] for key in ("cpu_time_ms",) if key in fields}
    assert done["stdout"]["text"].startswith("before"), done
    if exit_code is not None:
        assert done["exit_code"] == exit_code
    if limit is not None:
        assert done["limit"] == {"name": limit, "value": value}
    if reason in ("ok", "error", "kernel_died"):
        assert "limit" not in done
    if reason != "ok":
        assert len(done["message"]) > 30
    assert done["tier"] == "namespace"
    # The sandbox lives on, whatever the run did.
    again = post(client, small, "print('again')")
    assert again["stdout"]["text"] == "again\n", again
    assert again["end_reason"] == "ok"


def test_output_limit_names_itself(run: Run) -> None:
    done = run("while True: print('x' * 1000)", output_max_bytes=5000)
    assert (done["end_reason"], done["stdout"]["bytes"]) == ("output_limit", 5000)
    assert done["limit"] == {"name": "output_max_bytes", "value": 5000}
    assert done["limits_hit"] == ["output"]


def test_after_oom_the_context_is_fresh_and_files_stay(client: httpx.Client, small: dict[str, Any]) -> None:
    post(client, small, "x = 1; open('kept', 'w').write('kept')")
    done = post(client, small, MEMORY_BOMB)
    assert (done["end_reason"], done["state_lost"], done["limits_hit"]) == ("oom", True, ["memory"])
    after = post(client, small, "print('x' in globals(), open('kept').read())")
    assert after["stdout"]["text"] == "False kept\n"


@pytest.mark.complaint(15)
def test_a_child_that_runs_out_of_memory_takes_the_sandbox_along(client: httpx.Client, small: dict[str, Any]) -> None:
    """What the kernel's killer leaves is a torso: the agent ends the rest, and the run says `oom`."""
    code = (
        "import subprocess, sys\n"
        "idle = subprocess.Popen(['sleep', '300'])\n"
        "hog = 'l = []\\nwhile True: l.append(bytes([1]) * (8 << 20))'\n"
        "subprocess.run([sys.executable, '-c', hog], check=True)"
    )
    done = post(client, small, code)
    assert (done["end_reason"], done["exit_code"]) == ("oom", 137), done
    count = "import os; print(sum('sleep' in open(f'/proc/{p}/comm').read() for p in os.listdir('/proc') if p.isdigit()))"
    assert post(client, small, count)["stdout"]["text"] == "0\n"


def test_a_limit_that_did_no_harm_is_only_told(client: httpx.Client, small: dict[str, Any]) -> None:
    code = """
import os
children = []
try:
    while True:
        pid = os.fork()
        if pid == 0:
            import time; time.sleep(60)
        children.append(pid)
except BlockingIOError:
    for pid in children:
        os.kill(pid, 9)
print('handled')
"""
    done = post(client, small, code, timeout_ms=30_000, pids=40)
    assert (done["end_reason"], done["stdout"]["text"]) == ("ok", "handled\n")
    assert done["limits_hit"] == ["pids"]
    assert "limit" not in done


def test_a_program_that_met_the_full_disk(client: httpx.Client, small: dict[str, Any]) -> None:
    """The exception is that of the program, which says only that it failed: a small write of ours decides."""
    code = "import subprocess; subprocess.run(['dd', 'if=/dev/zero', 'of=big', 'bs=1M', 'count=500'], check=True)"
    done = post(client, small, code)
    assert done["end_reason"] == "disk_full", done
    done = post(client, small, "import os; os.remove('big'); import subprocess; subprocess.run(['false'], check=True)")
    assert done["end_reason"] == "error", done


def test_a_full_shm_is_a_full_disk_too(client: httpx.Client, small: dict[str, Any]) -> None:
    done = post(client, small, "open('/dev/shm/big', 'wb').write(bytes(100 << 20))")
    assert done["end_reason"] == "disk_full", done
    assert "limit" not in done, "which of its disks was full nobody knows"


def test_one_end_after_the_output(events: Events) -> None:
    seen = events("print('a'); print('b')\nimport time; time.sleep(60)", timeout_ms=300)
    assert [event.type for event in seen].count("ended") == 1
    assert seen[-1].type == "ended"
    assert [event.data["action"] for event in seen if event.type == "step"] == ["interrupt"]
    assert "".join(event.data["text"] for event in seen if event.type == "stdout") == "a\nb\n"


def test_interrupted_and_cancelled(client: httpx.Client) -> None:
    sandbox = create_sandbox(client)
    path = f"/v1/sandboxes/{sandbox['id']}"
    body = {"code": "import time; time.sleep(60)", "wait": False}
    first = client.post(f"{path}/runs", json=body).json()["id"]
    client.post(f"/v1/runs/{first}/interrupt")
    second = client.post(f"{path}/runs", json={"code": "print(1)"}).json()
    assert second["end_reason"] == "ok"
    assert client.get(f"/v1/runs/{first}").json()["end_reason"] == "interrupted"
    third = client.post(f"{path}/runs", json=body).json()["id"]
    client.delete(path)
    assert client.get(f"/v1/runs/{third}").json()["end_reason"] == "cancelled"


def test_the_cli_says_why(cli: Cli) -> None:
    done = cli("run", "--timeout", "1", "-c", "import time; time.sleep(60)")
    assert done.returncode == 124
    last = done.stderr.rstrip().splitlines()
    assert "it ran longer than 1000 ms" in last[-2]
    assert last[-1].startswith("ended timeout in ")
    assert last[-1].endswith("limit timeout_ms 1000")


def test_metrics_while_it_runs(events: Events) -> None:
    """Each second, for those who ask; they rise, and the last words are in `ended`."""
    code = "print('x' * 1000)\nimport time\nend = time.time() + 3.5\nwhile time.time() < end: pass"
    seen = events(code, metrics=True)
    metrics = [event.data for event in seen if event.type == "metrics"]
    assert len(metrics) >= 2
    assert [event.id for event in seen] == list(range(1, len(seen) + 1))
    for earlier, later in zip(metrics, metrics[1:], strict=False):
        assert later["wall_ms"] >= earlier["wall_ms"] + 900
        assert later["cpu_ms"] > earlier["cpu_ms"]
    assert metrics[-1]["output_bytes"] == 1001
    assert metrics[-1]["memory_bytes"] > MIB
    assert seen[-1].data["metrics"]["cpu_ms"] >= metrics[-1]["cpu_ms"]


def test_no_metrics_unless_asked_for(events: Events) -> None:
    assert all(event.type != "metrics" for event in events("import time; time.sleep(1.5)"))
