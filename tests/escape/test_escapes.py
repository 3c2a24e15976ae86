"""Group E: ways out of a sandbox, and towards the kernel's less trodden parts. One hostile program per case."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from attacks import Attacked
from canary import Canary, told, typed_end
from service import Service, processes_in_group

REFUSALS = {"EPERM", "EACCES", "ENOSYS", "EAFNOSUPPORT", "EROFS"}
ABSENT = {"ENOENT", "ENOTDIR", "ENXIO", "ENODATA"}

as_anybody = pytest.mark.parametrize("who", ["user", "root"])


def attempts(done: dict[str, Any]) -> dict[str, str]:
    """The attempts of a hostile program and their results; what ordinary programs need has succeeded."""
    text = done["stdout"]["text"]
    assert typed_end(done) == "ok" and done["stdout"]["omitted_bytes"] == 0, told(done)
    lines = dict(line.split("\t", 1) for line in text.splitlines() if "\t" in line)
    broken = {what: result for what, result in lines.items() if what.startswith("must ") and result != "done"}
    assert not broken, f"ordinary programs need {broken}"
    return {what: result for what, result in lines.items() if not what.startswith("must ")}


def assert_refused(done: dict[str, Any], at_least: int, also: set[str] | None = None) -> dict[str, str]:
    """Every attempt was refused, and there were as many as the program makes."""
    results = attempts(done)
    open_doors = {what: result for what, result in results.items() if result not in REFUSALS | (also or set())}
    assert not open_doors, open_doors
    assert len(results) >= at_least, sorted(results)
    return results


def facts(done: dict[str, Any]) -> dict[str, str]:
    """The lines `name value` of a program."""
    return {line.partition(" ")[0]: line.partition(" ")[2] for line in done["stdout"]["text"].splitlines()}


@as_anybody
def test_e01_new_namespaces(who: str, attacked: Attacked) -> None:
    results = assert_refused(attacked.program("namespaces", who=who), at_least=29)
    assert results["clone3"] == "ENOSYS", "libraries know another way only then"


@as_anybody
def test_e02_mounts(who: str, attacked: Attacked) -> None:
    assert_refused(attacked.program("mounts", who=who), at_least=21 + 2 * 10)


@as_anybody
def test_e03_namespaces_of_others(who: str, attacked: Attacked) -> None:
    # ESRCH, EINVAL: what a pidfd of pid 1 answers to code that may not look at it.
    also = ABSENT | {"ESRCH", "ENOTTY", "EINVAL"}
    results = assert_refused(attacked.program("joining", who=who), at_least=30, also=also)
    assert results["a process that /proc does not show"] == "ENOENT"


def test_e03_only_own_processes(attacked: Attacked) -> None:
    code = "import os; print(*sorted(int(p) for p in os.listdir('/proc') if p.isdigit()), open('/proc/1/comm').read())"
    *pids, name = attacked.run(code)["stdout"]["text"].split()
    assert name.startswith("cloister") and len(pids) < 6 and max(map(int, pids)) < 100


def host_settings() -> dict[str, str]:
    paths = [Path("/proc/sys/kernel", name) for name in ("core_pattern", "modprobe", "hostname", "sysrq", "pid_max")]
    return {str(path): path.read_text() for path in paths if path.exists()}


@as_anybody
def test_e04_writes_to_proc(who: str, attacked: Attacked) -> None:
    before = host_settings()
    assert_refused(attacked.program("procfs_writes", who=who), at_least=60, also=ABSENT)
    assert host_settings() == before


@as_anybody
def test_e06_overwriting_programs(who: str, attacked: Attacked, server: Service) -> None:
    done = attacked.program("overwrite_programs", who=who)
    # EBUSY, EXDEV: what a mount point and another file system say before they look at permissions.
    assert_refused(done, at_least=40, also=ABSENT | {"ETXTBSY", "EISDIR", "EBUSY", "EXDEV", "EINVAL", "EEXIST"})
    assert set(agents_in_the_pool(server)) == {digest(server.build.runtime / "bin" / "cloister-agent")}


def agents_in_the_pool(server: Service) -> list[bytes]:
    """Digests of the agents that sandboxes run; the warden alone sees the pool."""
    pool = Path(f"/proc/{server.program('cloister-warden').pid}/root{server.data}/run/pool")
    return [digest(path) for path in pool.glob("projects/*/*/bin/cloister-agent")]


def digest(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


HARMLESS = ("pipe:[", "socket:[", "anon_inode:", "/dev/null", "/proc/")


def assert_nothing_leaks(done: dict[str, Any]) -> list[int]:
    results = attempts(done)
    leaks = {what: result for what, result in results.items() if result == "done"}
    assert not leaks, leaks
    lines = [line.split(" ", 2) for line in done["stdout"]["text"].splitlines() if line.startswith("fd ")]
    assert all(target.startswith(HARMLESS) for _, _, target in lines), lines
    assert facts(done)["cwd"].startswith("/home/user")
    return [int(number) for _, number, _ in lines]


@as_anybody
def test_e07_descriptors_of_a_child(who: str, attacked: Attacked) -> None:
    assert assert_nothing_leaks(attacked.program("leaked_descriptors", who=who)) == [0, 1, 2]


def test_e07_descriptors_of_the_interpreter(attacked: Attacked) -> None:
    """Beside the three: its socket to the agent and what Python itself opens; nothing of it is a file."""
    numbers = assert_nothing_leaks(attacked.cell("leaked_descriptors"))
    assert numbers[:3] == [0, 1, 2] and len(numbers) < 10


@pytest.mark.parametrize("path", ["/proc/self/fd/3", "/proc/self/fd/7", "/proc/1/cwd", "/proc/1/root"])
def test_e07_working_directories(path: str, attacked: Attacked) -> None:
    """A directory of the agent as a run's working directory: refused, or inside the sandbox."""
    done = attacked.run("import os; print(os.getcwd(), os.path.exists('/opt/cloister'))", cwd=path)
    assert typed_end(done) == "error" or done["stdout"]["text"].startswith("/ True")


@pytest.mark.parametrize("path", ["/proc/1/root/etc/shadow", "/proc/1/environ", "/proc/1/fd/3", "/proc/self/fd/15"])
def test_e07_files_by_way_of_the_agent(path: str, attacked: Attacked) -> None:
    answer = attacked.client.get(f"/v1/sandboxes/{attacked.id}/files", params={"path": path})
    assert answer.status_code in (403, 404, 409, 422), answer.text


@as_anybody
def test_e08_the_agent_cannot_be_reached(who: str, attacked: Attacked) -> None:
    done = attacked.program("other_processes", who=who)
    results = attempts(done)
    # Root may signal everybody in its sandbox. For pid 1 the kernel drops what pid 1 did not ask for, so that
    # the agent goes on, which is looked at below.
    signals = {what for what in results if "sig" in what or what == "tgkill"} if who == "root" else set()
    assert len(signals) in (0, 64 + 3) and len(results) >= 90, results
    open_doors = {what: result for what, result in results.items() if what not in signals and result == "done"}
    assert not open_doors, open_doors
    attacked.works_again()


INET, INET6, UNIX, NETLINK = socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK
STREAM, DGRAM = socket.SOCK_STREAM, socket.SOCK_DGRAM
SOCKETS = {(UNIX, STREAM, 0), (UNIX, DGRAM, 0), (UNIX, 5, 0), (UNIX, 3, 0), (NETLINK, 2, 0), (NETLINK, 3, 0)}
SOCKETS |= {(family, STREAM, protocol) for family in (INET, INET6) for protocol in (0, socket.IPPROTO_TCP)}
SOCKETS |= {(family, DGRAM, protocol) for family in (INET, INET6) for protocol in (0, socket.IPPROTO_UDP)}


@as_anybody
def test_e09_sockets(who: str, attacked: Attacked) -> None:
    done = attacked.program("sockets", who=who)
    assert_refused(done, at_least=5)
    lines = [line.split() for line in done["stdout"]["text"].splitlines() if line.startswith("open ")]
    opened = {(int(family), int(kind), int(protocol)) for _, family, kind, protocol in lines}
    assert opened <= SOCKETS, f"these opened, too: {sorted(opened - SOCKETS)}"
    assert {(UNIX, STREAM, 0), (INET, STREAM, 0), (INET6, DGRAM, 0), (NETLINK, 3, 0)} <= opened


@as_anybody
def test_e09_foreign_instruction_sets(who: str, attacked: Attacked) -> None:
    results = attempts(attacked.program("foreign_abi", who=who))
    assert results == {"int 0x80": "SYS", "x32": "SYS"}


SHARED_FILES = ["/etc/passwd", "/usr/bin/bash", "/opt/cloister/kernels/python/cloister_kernel/driver.py"]
_HASHES = f"""
import hashlib
for path in {SHARED_FILES}: print(hashlib.sha256(open(path, "rb").read()).hexdigest())
"""


def test_e10_page_cache(attacked: Attacked, stranger_canary: Canary, client: httpx.Client) -> None:
    before = attacked.run(_HASHES)["stdout"]["text"].strip()
    of_canary = stranger_canary.run(_HASHES)
    done = attacked.program("page_cache", *SHARED_FILES)
    assert_refused(done, at_least=6 * len(SHARED_FILES))
    assert attacked.run(_HASHES)["stdout"]["text"].strip() == before
    assert stranger_canary.run(_HASHES) == of_canary
    assert client.post("/v1/runs", json={"code": _HASHES}).json()["stdout"]["text"].strip() == before


def test_e10_a_template_is_nobodys(attacked: Attacked, client: httpx.Client) -> None:
    """Root of a sandbox may change its programs; nobody else sees that."""
    code = "import subprocess; print(subprocess.run(['true']).returncode)"
    words = ["sudo", "-n", "cp", "/usr/bin/false", "/usr/bin/true"]
    changed = attacked.run(f"import subprocess; subprocess.run({words}, check=True)")
    assert typed_end(changed) == "ok", told(changed)
    assert attacked.run(code)["stdout"]["text"] == "1\n"
    assert client.post("/v1/runs", json={"code": code}).json()["stdout"]["text"] == "0\n"


@as_anybody
def test_e11_e12_kernel_surfaces(who: str, attacked: Attacked) -> None:
    results = assert_refused(attacked.program("surfaces", who=who), at_least=40, also={"ENOENT"})
    assert results["io_uring_setup"] == "ENOSYS", "libraries fall back only then"
    assert results["a call of the future"] == "ENOSYS"


@as_anybody
def test_e13_device_nodes(who: str, attacked: Attacked) -> None:
    assert_refused(attacked.program("device_nodes", who=who), at_least=50, also={"ENOENT"})


_MOUNTS = """
import os, stat
for line in open("/proc/self/mountinfo"):
    point, options = line.split()[4:6]
    at = os.stat(point)
    node = f"{os.major(at.st_rdev)}:{os.minor(at.st_rdev)}" if stat.S_ISCHR(at.st_mode) else "-"
    print(point, options, node)
"""
# null, zero, full, random, urandom, tty; a masked file of /proc is null, too.
NODES = {"1:3", "1:5", "1:7", "1:8", "1:9", "5:0"}


def test_e13_no_mount_honours_devices_or_set_id(attacked: Attacked) -> None:
    lines = [line.split() for line in attacked.run(_MOUNTS)["stdout"]["text"].splitlines()]
    mounts = {point: (set(options.split(",")), node) for point, options, node in lines}
    assert "/" in mounts and all("nosuid" in options for options, _ in mounts.values()), mounts
    lax = {point: node for point, (options, node) in mounts.items() if "nodev" not in options}
    # Left are single nodes, and /dev with its terminals.
    assert not {point for point, node in lax.items() if node not in NODES and point not in ("/dev", "/dev/pts")}


ROOT_CAPABILITIES = f"{sum(1 << bit for bit in (0, 1, 3, 4, 5, 6, 7, 18)):016x}"


def assert_cannot_change(done: dict[str, Any], uid: str, capabilities: str) -> None:
    told = facts(done)
    assert_refused(done, at_least=3, also={"EINVAL", "EOPNOTSUPP", "ENOTSUP"})
    assert (told["CapEff"], told["CapBnd"], told["NoNewPrivs"]) == (capabilities, capabilities, "1"), told
    assert (told["CapInh"], told["CapAmb"]) == (f"{0:016x}",) * 2 or uid == "0", told
    assert told["mine"] == uid, "a set-user-id file of our own"
    assert told["end"] == f"{uid} {uid}"


def test_e14_privileges_of_user(attacked: Attacked) -> None:
    """The file that root made set-user-id changes nothing for the user who runs it."""
    planted = facts(attacked.program("privileges", "plant", who="root"))
    assert planted["planted"] == "0o6755"
    done = attacked.program("privileges")
    assert_cannot_change(done, "1000", f"{0:016x}")
    assert facts(done)["probe"] == "1000"
    assert facts(done)["su"] != "0"


def test_e14_privileges_of_root(attacked: Attacked) -> None:
    """Root has the eight capabilities of design's table, and no way to any other."""
    done = attacked.program("privileges", who="root")
    text = done["stdout"]["text"]
    assert_cannot_change_root(text, facts(done))


def assert_cannot_change_root(text: str, told: dict[str, str]) -> None:
    assert (told["CapEff"], told["CapBnd"], told["NoNewPrivs"]) == (*(ROOT_CAPABILITIES,) * 2, "1"), text
    assert "setuid of an id that is not mapped\tEINVAL" in text, text
    assert "file capability\tEPERM" in text, text


@as_anybody
def test_e15_keys_into_terminals(who: str, attacked: Attacked) -> None:
    done = attacked.program("keys_into_terminals", who=who)
    assert_refused(done, at_least=6, also=ABSENT)


@pytest.fixture
def host_sockets(server: Service, tmp_path: Path) -> Iterator[list[str]]:
    """Listeners of the host, abstract and in the file system, and those of our own programs."""
    names = [f"@cloister-test-{os.getpid()}", f"{tmp_path}/host.sock"]
    listeners = []
    for name in names:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind("\0" + name[1:] if name.startswith("@") else name)
        listener.listen()
        listeners.append(listener)
    yield [*names, *(str(path) for path in server.data.rglob("*.sock"))]
    for listener in listeners:
        listener.close()


@as_anybody
def test_e16_sockets_of_the_host(who: str, attacked: Attacked, host_sockets: list[str]) -> None:
    done = attacked.program("unix_sockets", *host_sockets, who=who)
    assert_refused(done, at_least=3 * (len(host_sockets) + 8), also={"ECONNREFUSED", "ENOENT"})
    # What the sandbox lists is at most its own agent's listeners.
    assert int(facts(done)["listed"]) <= 4
