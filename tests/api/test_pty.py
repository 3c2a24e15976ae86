"""Terminals of processes, and `cloister exec` and `cloister shell`, which a person uses through tmux."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets
from conftest import Cli
from service import Service, wait_until

SIZE = {"cols": 80, "rows": 24}
# A prompt that can be waited for, without what bash says to better terminals around it.
PLAIN = {"PS1": "$ ", "TERM": "dumb"}


class Terminal:
    """A client of a process's WebSocket: bytes both ways, and control messages."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket
        self.output = b""
        self.stderr = b""
        self.events: list[dict[str, Any]] = []
        self._stream = "stdout"

    async def read(self) -> None:
        message = await asyncio.wait_for(self.socket.recv(), 20)
        if isinstance(message, bytes):
            if self._stream == "stdout":
                self.output += message
            else:
                self.stderr += message
            return
        event = json.loads(message)
        if event["event"] == "stream":
            self._stream = event["data"]["name"]
        else:
            self.events.append(event)

    async def until(self, wanted: bytes) -> None:
        while wanted not in self.output:
            await self.read()

    async def end(self) -> dict[str, Any]:
        while not self.events or self.events[-1]["event"] != "ended":
            await self.read()
        return self.events[-1]["data"]["process"]

    async def send(self, data: bytes) -> None:
        await self.socket.send(data)

    async def control(self, **fields: Any) -> None:
        await self.socket.send(json.dumps(fields))


class Terminals:
    """Processes with terminals in one sandbox."""

    def __init__(self, client: httpx.Client, server: Service, sandbox: str) -> None:
        self.client, self.server = client, server
        self.url = f"/v1/sandboxes/{sandbox}/processes"

    def start(self, argv: list[str], **fields: Any) -> str:
        answer = self.client.post(self.url, json={"argv": argv, "pty": SIZE, **fields})
        assert answer.status_code == 201, answer.text
        return answer.json()["id"]

    @contextlib.asynccontextmanager
    async def attach(self, process: str, query: str = "") -> AsyncIterator[Terminal]:
        url = self.server.url.replace("http", "ws") + f"{self.url}/{process}/attach{query}"
        headers = {"Authorization": f"Bearer {self.server.key}"}
        async with websockets.connect(url, extra_headers=headers, max_size=1 << 24) as socket:
            yield Terminal(socket)

    def shell(self, use: Callable[[Terminal], Any], argv: list[str] | None = None, **fields: Any) -> Any:
        """Starts a shell, and has `use` work with it."""
        process = self.start(argv or ["/bin/bash", "--norc"], env=PLAIN, **fields)

        async def work() -> Any:
            async with self.attach(process) as terminal:
                return await use(terminal)

        return asyncio.run(work())


@pytest.fixture
def terminals(client: httpx.Client, server: Service, shared: dict[str, Any]) -> Iterator[Terminals]:
    made = Terminals(client, server, shared["id"])
    yield made
    for process in client.get(made.url).json()["processes"]:
        client.delete(f"{made.url}/{process['id']}")


def test_it_is_a_real_terminal(terminals: Terminals) -> None:
    async def use(terminal: Terminal) -> dict[str, Any]:
        await terminal.send(b"tty; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo t''ty; stty size; echo $TERM; ls -l $(tty)\n")
        await terminal.until(b"crw")
        await terminal.send(b"exit 5\n")
        return await terminal.end()

    done = terminals.shell(use)
    assert (done["exit_code"], done["pty"]) == (5, SIZE)


def test_what_it_shows(terminals: Terminals) -> None:
    async def use(terminal: Terminal) -> bytes:
        await terminal.until(b"done")
        return terminal.output

    script = "tty; [ -t 0 ] && echo tty; stty size; echo $TERM; stat -c %U $(tty); echo done"

    async def work() -> bytes:
        async with terminals.attach(terminals.start(["/bin/bash", "-c", script])) as terminal:
            return await use(terminal)

    text = asyncio.run(work()).decode()
    assert text.startswith("/dev/pts/")
    assert "\r\ntty\r\n24 80\r\nxterm-256color\r\nuser\r\n" in text


def test_job_control(terminals: Terminals) -> None:
    async def use(terminal: Terminal) -> bytes:
        await terminal.send(b"sleep 100\n")
        await terminal.until(b"sleep 100\r\n")
        await asyncio.sleep(0.3)
        await terminal.send(b"\x1a")  # Ctrl-Z
        await terminal.until(b"Stopped")
        await terminal.send(b"fg\n")
        await terminal.until(b"fg\r\n")
        await asyncio.sleep(0.3)
        await terminal.send(b"\x03")  # Ctrl-C
        await terminal.until(b"^C\r\n$ ")
        await terminal.send(b"echo st=$?\n")
        await terminal.until(b"st=130")
        return terminal.output

    assert b"no job control" not in terminals.shell(use)


def test_ctrl_c_reaches_the_foreground_only(terminals: Terminals) -> None:
    async def use(terminal: Terminal) -> dict[str, Any]:
        await terminal.send(b"cat\n")
        await terminal.until(b"cat\r\n")
        await asyncio.sleep(0.2)
        await terminal.send(b"\x03")  # which throws away what was typed, too
        await terminal.until(b"^C\r\n$ ")
        await terminal.send(b"echo al''ive\n")
        await terminal.until(b"alive")
        await terminal.send(b"\x04")  # Ctrl-D
        return await terminal.end()

    assert terminals.shell(use)["end_reason"] == "ok"


def test_resize_is_seen(terminals: Terminals) -> None:
    async def use(terminal: Terminal) -> None:
        await terminal.send(b"trap 'stty size; echo ch''anged' WINCH; echo r''eady\n")
        await terminal.until(b"ready\r\n$ ")
        await terminal.control(resize={"cols": 132, "rows": 50})
        resized = terminals.client.get
        while resized(f"{terminals.url}").json()["processes"][-1]["pty"] != {"cols": 132, "rows": 50}:
            await asyncio.sleep(0.05)
        await terminal.send(b"\n")
        await terminal.until(b"50 132\r\nchanged")

    terminals.shell(use)
    process = terminals.start(["sleep", "60"])
    answer = terminals.client.post(f"{terminals.url}/{process}/resize", json={"cols": 100, "rows": 40})
    assert answer.status_code == 204
    assert terminals.client.get(f"{terminals.url}/{process}").json()["pty"] == {"cols": 100, "rows": 40}
    answer = terminals.client.post(f"{terminals.url}/{process}/resize", json={"cols": 0})
    assert answer.status_code == 422


def test_colours_and_every_byte(terminals: Terminals) -> None:
    async def use(terminal: Terminal) -> bytes:
        await terminal.send(b"printf '\\033[31mred\\033[0m\\xff\\x00e''nd\\n'\n")
        await terminal.until(b"end\r\n")
        return terminal.output

    assert b"\x1b[31mred\x1b[0m\xff\x00end\r\n" in terminals.shell(use)


def test_it_outlives_its_client_and_shows_its_screen_again(terminals: Terminals) -> None:
    process = terminals.start(["/bin/bash", "--norc"], env=PLAIN)

    async def work() -> bytes:
        async with terminals.attach(process) as terminal:
            await terminal.send(b"X=kept; echo on''e\n")
            await terminal.until(b"one\r\n")
        async with terminals.attach(process, "?screen=true") as terminal:
            await terminal.until(b"one\r\n$ ")
            await terminal.send(b"echo $X\n")
            await terminal.until(b"kept\r\n")
            return terminal.output

    assert asyncio.run(work()).startswith(b"$ ")


def test_a_full_screen_program_is_shown_again_without_its_past(terminals: Terminals) -> None:
    enter = "\x1b[?1049h"
    script = f"seq 100000; printf '{enter}'; for i in $(seq 50); do printf '\\033[H%s of the screen' $i; done; sleep 60"
    process = terminals.start(["/bin/bash", "-c", script])

    async def work() -> bytes:
        async with terminals.attach(process) as terminal:
            await terminal.until(b"50 of the screen")
        async with terminals.attach(process, "?screen=true") as terminal:
            await terminal.until(b"50 of the screen")
            return terminal.output

    again = asyncio.run(work())
    assert again.startswith(enter.encode())
    assert b"99999" not in again


def test_of_a_long_past_only_the_end_comes(terminals: Terminals) -> None:
    process = terminals.start(["/bin/bash", "-c", "seq 200000; sleep 60"])

    async def work() -> bytes:
        async with terminals.attach(process) as terminal:
            await terminal.until(b"\r\n200000\r\n")
        async with terminals.attach(process, "?screen=true") as terminal:
            await terminal.until(b"\r\n200000\r\n")
            return terminal.output

    assert len(asyncio.run(work())) <= 128 << 10


def test_the_end_of_a_terminal_ends_its_jobs(terminals: Terminals) -> None:
    async def use(terminal: Terminal) -> None:
        await terminal.send(b"sleep 331 & nohup sleep 332 >/dev/null 2>&1 &\n")
        await terminal.send(b"sleep 0.2; echo u''p\n")
        await terminal.until(b"up\r\n")
        await terminal.control(signal="HUP")
        await terminal.end()

    terminals.shell(use)

    def alive(pattern: str) -> bool:
        body = {"argv": ["pgrep", "-f", pattern], "wait": True}
        return terminals.client.post(terminals.url, json=body).json()["exit_code"] == 0

    wait_until(lambda: not alive("^sleep 331"), 10, "the job is gone")
    assert alive("^sleep 332")


def test_pipes_over_a_websocket(terminals: Terminals) -> None:
    body = {"argv": ["/bin/bash", "-c", "cat; echo err >&2; echo out; exit 3"], "stdin_open": True}
    process = terminals.client.post(terminals.url, json=body).json()["id"]

    async def work() -> tuple[Terminal, dict[str, Any]]:
        async with terminals.attach(process) as terminal:
            await terminal.send(b"in\xff\x00\n")
            await terminal.control(eof=True)
            return terminal, await terminal.end()

    terminal, done = asyncio.run(work())
    assert (terminal.output, terminal.stderr) == (b"in\xff\x00\nout\n", b"err\n")
    assert done["exit_code"] == 3


@pytest.mark.parametrize("message", ['{"resize": {"cols": -1}}', '{"fly": true}', "[", '{"signal": "FLY"}'])
def test_a_bad_control_message_closes(terminals: Terminals, message: str) -> None:
    process = terminals.start(["sleep", "60"])

    async def work() -> int:
        async with terminals.attach(process) as terminal:
            await terminal.socket.send(message)
            with pytest.raises(websockets.ConnectionClosed) as closed:
                while True:
                    await terminal.read()
            return closed.value.code

    assert asyncio.run(work()) == 1008


def test_a_terminal_has_no_end_of_stdin(terminals: Terminals) -> None:
    process = terminals.start(["cat"])
    answer = terminals.client.post(f"{terminals.url}/{process}/stdin", content=b"", params={"eof": "true"})
    assert answer.status_code == 409
    assert "Ctrl-D" in answer.json()["error"]["message"]


def test_keys_cannot_be_pushed_into_it(terminals: Terminals) -> None:
    """TIOCSTI: a program of another user would type into the shell."""
    script = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSTI, b'x')"
    process = terminals.start(["python3", "-c", script])
    wait_until(
        lambda: terminals.client.get(f"{terminals.url}/{process}").json()["state"] == "ended", 20, "it has ended"
    )
    assert terminals.client.get(f"{terminals.url}/{process}").json()["exit_code"] == 1


# --- cloister exec ---


def test_exec_passes_everything_through(cli: Cli, shared: dict[str, Any]) -> None:
    done = cli("exec", shared["id"], "--", "bash", "-c", "cat; echo err >&2; exit 3", stdin="in\n")
    assert (done.returncode, done.stdout, done.stderr) == (3, "in\n", "err\n")
    done = cli("exec", shared["id"], "echo", "-n", "a  b", "--json")
    assert (done.returncode, done.stdout) == (0, "a  b --json")


def test_exec_pipes_bytes_of_any_size(cli: Cli, server: Service, shared: dict[str, Any]) -> None:
    data = os.urandom(3 << 20)
    command = [server.build.program("cloister"), "exec", shared["id"], "cat"]
    done = subprocess.run(command, input=data, capture_output=True, env=server.environment(), timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == data


def test_exec_without_stdin_does_not_wait(cli: Cli, shared: dict[str, Any]) -> None:
    assert cli("exec", shared["id"], "cat").returncode == 0


def test_execs_options(cli: Cli, shared: dict[str, Any]) -> None:
    words = ["--cwd", "/tmp", "--user", "root", "--env", "A=b", shared["id"], "sh", "-c", "pwd; id -u; echo $A"]
    assert cli("exec", *words).stdout == "/tmp\n0\nb\n"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--timeout", "300ms", "ID", "sleep", "60"], 124),
        (["ID", "sh", "-c", "kill -9 $$"], 137),
        (["ID", "no-such-program"], 2),
        (["ID"], 2),
        ([], 2),
        (["a" * 20, "true"], 66),
        (["-t", "--json", "ID", "true"], 2),
        (["ID", "true"], 0),
    ],
    ids=str,
)
def test_execs_exit_codes(cli: Cli, shared: dict[str, Any], words: list[str], code: int) -> None:
    done = cli("exec", *[shared["id"] if word == "ID" else word for word in words])
    assert done.returncode == code, done.stderr


def test_exec_as_json(cli: Cli, shared: dict[str, Any]) -> None:
    done = cli("exec", "--json", shared["id"], "bash", "-c", "cat; exit 4", stdin="in")
    assert done.returncode == 4
    record = json.loads(done.stdout)
    assert (record["exit_code"], record["stdout"]["text"], record["end_reason"]) == (4, "in", "error")


def test_exec_detached_and_attached_again(cli: Cli, shared: dict[str, Any]) -> None:
    done = cli("exec", "-d", shared["id"], "bash", "-c", "echo one; sleep 0.5; echo two; exit 6")
    process = done.stdout.strip()
    done = cli("exec", "--attach", process, shared["id"])
    assert (done.returncode, done.stdout) == (6, "one\ntwo\n")
    done = cli("exec", "--attach", process, shared["id"])  # also when it has ended
    assert (done.returncode, done.stdout) == (6, "one\ntwo\n")


def test_signals_go_to_the_program(cli: Cli, server: Service, shared: dict[str, Any]) -> None:
    script = "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.05; done"
    command = [server.build.program("cloister"), "exec", shared["id"], "bash", "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=server.environment()) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        program.send_signal(signal.SIGINT)
        assert program.stdout.read() == "caught\n"
        assert program.wait(20) == 9


def test_a_closed_output_ends_the_program(server: Service, shared: dict[str, Any], terminals: Terminals) -> None:
    cloister = server.build.program("cloister")
    line = f"{cloister} exec {shared['id']} yes cloister-out | head -n2"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, env=server.environment(), timeout=60
    )
    assert (done.returncode, done.stdout) == (130, "cloister-out\ncloister-out\n")
    wait_until(
        lambda: all(p["state"] == "ended" for p in terminals.client.get(terminals.url).json()["processes"]),
        10,
        "it has ended",
    )


# --- cloister shell, as a person sees it ---


class Screen:
    """A terminal of tmux, with a server of its own."""

    def __init__(self, server: Service, place: Path) -> None:
        self.socket = str(place / "tmux")
        self.environment = server.environment() | {"TERM": "xterm-256color"}

    def tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-f", "/dev/null", "-S", self.socket, *words],
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=30,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self) -> None:
        self.tmux("new-session", "-d", "-x", "90", "-y", "30", "bash --norc --noprofile")
        self.type("PS1='local$ '", "Enter")
        self.sees("\nlocal$")

    def type(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def text(self) -> str:
        return self.tmux("capture-pane", "-p")

    def colours(self) -> str:
        return self.tmux("capture-pane", "-pe")

    def sees(self, wanted: str) -> None:
        try:
            wait_until(lambda: wanted in self.text(), 20, f"{wanted!r} is on the screen")
        except TimeoutError as error:
            raise AssertionError(f"{error}:\n{self.text()}") from None


@pytest.fixture
def screen(server: Service, shared: dict[str, Any], tmp_path: Path) -> Iterator[Screen]:
    """A local shell in tmux in which `cloister shell` of the sandbox has been started."""
    screen = Screen(server, tmp_path)
    screen.start()
    screen.type("stty -a | md5sum", "Enter")
    screen.sees("  -")
    screen.type(f"clear; {shlex.quote(server.build.program('cloister'))} shell {shared['id']}", "Enter")
    screen.sees("user@")
    yield screen
    screen.tmux("kill-server")


needs_tmux = pytest.mark.here(lambda: shutil.which("tmux") is not None, "tmux is not installed")


@needs_tmux
def test_a_shell_for_a_person(screen: Screen) -> None:
    screen.type("stty size; id -un", "Enter")
    screen.sees("30 90\nuser")
    screen.type("printf '\\033[32mgreen\\033[0m\\n'", "Enter")
    screen.sees("\ngreen")
    assert "\x1b[32mgreen" in screen.colours()
    screen.type("sleep 100", "Enter")
    time.sleep(0.5)
    screen.type("C-z")
    screen.sees("Stopped")
    screen.type("fg", "Enter")
    time.sleep(0.3)
    screen.type("C-c")
    screen.tmux("resize-window", "-x", "70", "-y", "20")
    screen.type("stty size", "Enter")
    screen.sees("20 70")
    screen.type("exit 7", "Enter")
    screen.sees("local$")
    screen.type("echo code=$? icanon=$(stty -a | grep -c ' icanon')", "Enter")
    screen.sees("\ncode=7 icanon=1")  # and the local terminal is as it was


@needs_tmux
def test_top_through_it(screen: Screen) -> None:
    screen.type("top -d 0.3", "Enter")
    screen.sees("load average")
    screen.sees("COMMAND")
    screen.tmux("resize-window", "-x", "60", "-y", "15")
    wait_until(lambda: len(screen.text().rstrip("\n").split("\n")) <= 15 and "PID" in screen.text(), 10, "it fits")
    screen.type("q")
    screen.sees("user@")  # it throws away what is typed before it has left
    screen.type("echo af''ter", "Enter")
    screen.sees("after")


@needs_tmux
def test_the_terminal_is_put_back_whatever_happens(screen: Screen, server: Service) -> None:
    (shell,) = _processes_of("shell", server)
    os.kill(shell, signal.SIGTERM)
    screen.sees("local$")
    screen.type("echo icanon=$(stty -a | grep -c ' icanon')", "Enter")
    screen.sees("\nicanon=1")


def _processes_of(verb: str, server: Service) -> list[int]:
    out = subprocess.run(["pgrep", "-f", f"{server.build.program('cloister')} {verb}"], capture_output=True, text=True)
    return [int(word) for word in out.stdout.split()]


def test_a_shell_needs_a_terminal(cli: Cli, shared: dict[str, Any]) -> None:
    done = cli("shell", shared["id"])
    assert done.returncode == 2
    assert "cloister exec" in done.stderr


def test_a_sandbox_of_nothing(cli: Cli) -> None:
    assert cli("exec", "nothing", "true").returncode == 66

