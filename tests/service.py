"""Starts the built programs on a data directory of their own, and checks that nothing is left when they stop.

service = Service(Build.from_environment())
service.start()
httpx.get(service.url + "/readyz")
service.stop()
assert service.leftovers() == []
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

POOL_BYTES = 8 << 30
SERVER_UID = 64999
# Importing the image is most of it; the time is for a machine that compiles beside the tests.
PREPARE_SECONDS = 600
START_SECONDS = 60
STOP_SECONDS = 30

SANITIZER_REPORT = re.compile(r"ERROR: \w+Sanitizer|SUMMARY: \w+Sanitizer|runtime error: ")


@dataclasses.dataclass(frozen=True)
class Build:
    """What is under test: a directory of programs, a base image, and layers on it."""

    bin: Path
    image: Path
    layers: tuple[Path, ...] = ()

    @classmethod
    def from_environment(cls) -> Build:
        missing = [name for name in ("CLOISTER_BIN", "CLOISTER_IMAGE") if name not in os.environ]
        if missing:
            raise RuntimeError(f"{' and '.join(missing)} must be set; `./dev test api` does it")
        image, *layers = (Path(path) for path in os.environ["CLOISTER_IMAGE"].split(":"))
        return cls(Path(os.environ["CLOISTER_BIN"]), image, tuple(layers))

    @property
    def runtime(self) -> Path:
        return self.bin.parent / "runtime"

    def program(self, name: str) -> str:
        return str(self.bin / name)


@dataclasses.dataclass
class Process:
    pid: int
    command: list[str]


def processes() -> list[Process]:
    """Everything that runs on this machine, as far as it can still be read."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        found.append(Process(int(entry.name), [word.decode(errors="replace") for word in words if word]))
    return found


def processes_in_group(name: str) -> list[int]:
    """Processes below a cgroup of that name, in any hierarchy: a sandbox's id, or a warden's instance."""
    return [process for process, lines in groups_of_processes() if any(f"/{name}/" in line for line in lines)]


def groups_of_processes() -> Iterator[tuple[int, list[str]]]:
    """Each process and the lines of its /proc/PID/cgroup. Not those that only wait to be reaped: version 2 names a group
    for them, too."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):  # it has just ended
            lines = (entry / "cgroup").read_text().splitlines()
            if (entry / "stat").read_text().rpartition(")")[2].split()[0] != "Z":
                yield int(entry.name), lines


def zygotes(nest: str) -> list[int]:
    """Those of the nests below a warden's group, or that of a nest. What one has just forked is there for a moment, too:
    it comes later."""
    found = [
        process
        for process, lines in groups_of_processes()
        if any(f"/{nest}/" in line and line.endswith("/zygote") for line in lines)
    ]
    return sorted(found, key=_started)


def nest_of(sandbox: str) -> str:
    """The name of its nest's group."""
    for _, lines in groups_of_processes():
        for line in lines:
            if f"/{sandbox}/" in line:
                return line.split(f"/{sandbox}/")[0].rsplit("/", 1)[1]
    raise LookupError(f"no process of the sandbox {sandbox}")


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(0.02)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Service:
    """One `cloister serve` with its data directory."""

    def __init__(self, build: Build, parent: str = "/tmp") -> None:
        self.build = build
        self.images = [build.image]
        self.failpoint = ""  # where a program dies, once (src/base/failpoint.h)
        self.asan_options = ""
        self.require_limits: list[str] = []
        # More of `cloister serve`. Without a pool: many tests count what is there; test_warm.py has one.
        self.options = ["--warm-sandboxes", "0"]
        self.data = Path(tempfile.mkdtemp(prefix="cl-", dir=parent))
        self.data.chmod(0o711)
        self.log = Path("/tmp", self.data.name).with_suffix(".log")
        self.url = f"http://127.0.0.1:{free_port()}"
        self.key = ""
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    # --- life ---

    def start(self) -> None:
        self._prepare()
        self.serve()

    def serve(self) -> None:
        """`cloister serve`, until it is ready; also after everything was killed."""
        self._begin()
        wait_until(self._ready, START_SECONDS, f"the service is ready (log: {self.log})")
        self.key = json.loads((self.data / "client.json").read_text())["api_key"]

    def stop(self) -> int:
        """Asks the service to stop, and answers its exit code."""
        supervisor = self._supervisor
        if supervisor is None:
            return 0
        self._supervisor = None
        supervisor.send_signal(signal.SIGTERM)
        try:
            return supervisor.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill_rest()
            supervisor.kill()
            supervisor.wait()
            raise

    def kill_rest(self) -> None:
        """kill -9 of all of our programs that still run here."""
        for process in self.programs():
            try:
                os.kill(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def remove(self) -> None:
        shutil.rmtree(self.data, ignore_errors=True)

    # --- looking at it ---

    def programs(self) -> list[Process]:
        """Our programs that run on this data directory."""
        data = str(self.data)
        return [process for process in processes() if data in process.command]

    def program(self, name: str) -> Process:
        """The one program of that name; the warden's short-lived helpers carry its name too, so the oldest."""
        matching = [p for p in self.programs() if p.command[0].endswith("/" + name)]
        if not matching:
            raise LookupError(f"{name} is not running")
        return min(matching, key=lambda process: _started(process.pid))

    def kill(self, name: str) -> float:
        """kill -9 of one of our programs; the seconds until its successor serves."""
        old = self.program(name).pid
        os.kill(old, signal.SIGKILL)
        begin = time.monotonic()

        def back() -> bool:
            try:
                return self.program(name).pid != old and answers(self.url + "/readyz")
            except LookupError:
                return False

        wait_until(back, START_SECONDS, f"{name} serves again")
        return time.monotonic() - begin

    def log_text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def sanitizer_reports(self) -> list[str]:
        """Lines of the log that a sanitizer wrote."""
        return [line for line in self.log_text().splitlines() if SANITIZER_REPORT.search(line)]

    def leftovers(self) -> list[str]:
        """What is still there of a service that has stopped, in words."""
        data = str(self.data)
        left = [f"process {p.pid}: {' '.join(p.command)}" for p in self.programs()]
        left += [f"process {pid} in its cgroup" for pid in processes_in_group(self.group_name())]
        left += [f"mount {line}" for line in _lines("/proc/self/mountinfo") if data in line]
        left += [f"loop device {path.parent.parent.name}" for path in _loops() if data in path.read_text()]
        left += [f"cgroup {path}" for path in self.cgroups()]
        left += [f"socket {path}" for path in self.data.rglob("*.sock")]
        return left

    def subvolumes(self) -> list[str]:
        """Files and spools of sandboxes in the pool, which only the warden has mounted."""
        pool = Path(f"/proc/{self.program('cloister-warden').pid}/root{self.data}/run/pool")
        return [f"{kind}/{path.name}" for kind in ("sandboxes", "spools") for path in (pool / kind).iterdir()]

    def cgroups(self) -> list[Path]:
        """The warden's groups for this data directory, in every hierarchy."""
        # They hang at the top of each hierarchy; groups of others below may go while we look.
        root = Path("/sys/fs/cgroup")
        return [path / self.group_name() for path in (root, *root.iterdir()) if (path / self.group_name()).is_dir()]

    def group_name(self) -> str:
        return f"cloister-{fnv1a(str(self.data.resolve())):08x}"

    # --- starting ---

    def _prepare(self) -> None:
        command = [
            self.build.program("cloister-warden"),
            "prepare",
            *("--data", str(self.data)),
            *(f"--image={image}" for image in self.images),
            *("--runtime", str(self.build.runtime)),
            *("--pool-bytes", str(POOL_BYTES)),
        ]
        with self.log.open("ab") as log:
            subprocess.run(command, stdout=log, stderr=log, check=True, timeout=PREPARE_SECONDS)

    def _begin(self) -> None:
        command = [
            self.build.program("cloister"),
            "serve",
            *("--data", str(self.data)),
            *("--listen", self.url.removeprefix("http://")),
            *("--user", str(SERVER_UID)),
            *(f"--image={image}" for image in self.images),
            *("--runtime", str(self.build.runtime)),
            "--print-key",
            *self.options,
        ]
        if self.require_limits:
            command += ["--require-limits", ",".join(self.require_limits)]
        with self.log.open("ab") as log:
            self._supervisor = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment()
            )

    def environment(self) -> dict[str, str]:
        """An environment in which the CLI finds this service and nothing of the caller's."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        more = {"CLOISTER_FAILPOINT": self.failpoint, "ASAN_OPTIONS": self.asan_options}
        return kept | {"CLOISTER_DATA": str(self.data)} | {name: value for name, value in more.items() if value}

    def _ready(self) -> bool:
        assert self._supervisor is not None
        if self._supervisor.poll() is not None:
            tail = "\n".join(self.log_text().splitlines()[-15:])
            raise RuntimeError(f"`cloister serve` ended with {self._supervisor.returncode}:\n{tail}")
        return (self.data / "client.json").exists() and answers(self.url + "/readyz")


@contextmanager
def running(service: Service) -> Iterator[Service]:
    """Starts it, and holds at its end that it stopped well and left nothing; else its log stays."""
    try:
        service.start()
        yield service
        code = service.stop()
        left, reports = service.leftovers(), service.sanitizer_reports()
    finally:
        service.stop()
        service.kill_rest()
        service.remove()
    assert code == 0, f"`cloister serve` ended with {code}; its log is {service.log}"
    assert not left, f"left behind: {left}"
    assert not reports, f"sanitizer reports in {service.log}: {reports}"
    service.log.unlink()


def answers(url: str) -> bool:
    import httpx  # late: the leftover checks above need no HTTP

    try:
        return httpx.get(url, timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def fnv1a(text: str) -> int:
    """The 32-bit hash that the warden names its groups by."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()


def _loops() -> list[Path]:
    return list(Path("/sys/block").glob("loop*/loop/backing_file"))


def _started(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return 1 << 62
