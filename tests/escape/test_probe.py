"""The boundary probe: everything that must be denied, and everything that must work, as `user` and as root inside.

The probe is a static program (tests/escape/probe). Its lines are compared with probe/golden.txt, which a person has
read line by line: a change there is a change of the boundary.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import create_sandbox
from service import Build

GOLDEN = Path(__file__).parent / "probe" / "golden.txt"
IDENTITIES = {"user": ["./probe"], "root": ["sudo", "./probe"]}

# What depends on the kernel's version or configuration: a file or call that it does not have is as good as denied.
ABSENT = "denied ENOENT"

NOBODY = 65534

Matrix = dict[str, dict[str, str]]


def read_golden() -> Matrix:
    """identity → what was tried → verdict, from lines `NAME | as user | as root`."""
    matrix: Matrix = {identity: {} for identity in IDENTITIES}
    for line in GOLDEN.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        name, *verdicts = (part.strip() for part in line.split("|"))
        for identity, verdict in zip(IDENTITIES, verdicts, strict=True):
            matrix[identity][name] = verdict
    return matrix


def rows_of(text: str) -> dict[str, str]:
    return {name: verdict for name, _, verdict in (line.partition(": ") for line in text.splitlines())}


@pytest.fixture(scope="module")
def probed(client: httpx.Client, build: Build) -> Matrix:
    """One sandbox that was probed as both."""
    sandbox = create_sandbox(client)
    url = f"/v1/sandboxes/{sandbox['id']}"
    program = Path(build.program("cloister-probe")).read_bytes()
    assert client.put(f"{url}/files", params={"path": "probe"}, content=program).status_code == 200
    matrix: Matrix = {}
    for identity, command in IDENTITIES.items():
        code = f"""
import os, subprocess
os.chmod("probe", 0o755)
done = subprocess.run({command!r}, stdin=subprocess.DEVNULL, capture_output=True, text=True)
print(done.stdout, end="")
if done.returncode: raise SystemExit(f"{{done.returncode}}: {{done.stderr}}")
"""
        done: dict[str, Any] = client.post(f"{url}/runs", json={"code": code, "timeout_ms": 120_000}).json()
        assert done["end_reason"] == "ok", done
        matrix[identity] = rows_of(done["stdout"]["text"])
    after = client.post(f"{url}/runs", json={"code": "print(6 * 7)"}).json()
    assert after["stdout"]["text"] == "42\n", "the sandbox survives being probed"
    assert client.delete(url).status_code == 204
    return matrix


@pytest.mark.parametrize("identity", IDENTITIES)
def test_the_boundary_is_where_it_was(identity: str, probed: Matrix) -> None:
    expected, seen = read_golden()[identity], probed[identity]
    moved = {
        name: f"{verdict}, not {expected.get(name)}"
        for name, verdict in seen.items()
        if verdict != expected.get(name) and not (verdict == ABSENT and str(expected.get(name)).startswith("denied"))
    }
    assert not moved, f"as {identity}: {moved}"
    assert set(seen) == set(expected), "every row of golden.txt was tried"


def test_no_call_hangs(probed: Matrix) -> None:
    assert not [name for rows in probed.values() for name, verdict in rows.items() if verdict in ("hangs", "cannot be tried")]


@pytest.fixture
def outside(build: Build) -> Iterator[Path]:
    """The probe where any user of this machine may execute it."""
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory) / "probe"
        shutil.copy(build.program("cloister-probe"), program)
        Path(directory).chmod(0o755)
        program.chmod(0o755)
        yield program


def test_the_probe_would_notice(outside: Path) -> None:
    """Outside of a sandbox, without any privilege, the same program reports that much is allowed."""
    done = subprocess.run(
        [outside], user=NOBODY, group=NOBODY, extra_groups=[], cwd="/", capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    rows = rows_of(done.stdout)
    for name in ("ptrace of itself", "splice", "process_vm_readv", "pidfd_getfd", "cgroup files"):
        assert rows[name] == "allowed", name
    assert rows["mounts without nosuid"] != "none"
    assert rows["no_new_privs"] == "0"


def test_the_probe_refuses_to_do_harm(build: Build) -> None:
    """As root of the machine it would really mount, reboot and set the clock."""
    done = subprocess.run([build.program("cloister-probe")], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
