"""The bridge's loop: takes a request, lets the kernel run it, passes on what it says, reports how it went."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import zmq
from cloister_kernel.channel import Channel, Message

from . import kernelspec, translate
from .kernel import Kernel
from .languages import Preparation, preparation
from .session import JupyterMessage
from .streams import OrderedOutput

_ASK_AGAIN_MS = 300
# A kernel says that it is idle when all output of a run has been sent. One that never says so is waited for so long.
_IDLE_WAIT_S = 5.0
_LINE_READ = 64 * 1024
_NO_STDIN = (
    "this run has no stdin, so there is nothing to read: send `stdin` with the run, or pipe text into `cloister run`"
)
_END_OF_FILE = "\x04"  # how a notebook answers input() with the end of the file


class KernelEnded(Exception):
    """The kernel's process is gone."""


class BadRequest(Exception):
    """What the run asks for cannot be done; its text says why."""


@dataclass
class Request:
    """One run."""

    code: str
    filename: str | None = None
    argv: list[str] | None = None
    env: dict[str, str] = field(default_factory=dict)
    cwd: str | None = None
    stdin_fd: int | None = None

    @classmethod
    def of(cls, message: Message) -> Request:
        content = {name: value for name, value in message.content.items() if name != "stdin"}
        return cls(**content, stdin_fd=message.fds[0] if message.fds else None)


@dataclass
class Execution:
    """One execute_request that the kernel has been sent."""

    msg_id: str
    shown: bool  # whether its output is that of the run
    reply: dict[str, Any] | None = None
    idle: bool = False
    busy: bool = False
    failed: bool = False  # an error was shown
    idle_until: float = 0.0

    def over(self) -> bool:
        return self.reply is not None and (self.idle or time.monotonic() > self.idle_until)


class _NoCell:
    """What the channel asks its user about interrupts: here they only set a flag, so that nothing is cut."""

    def in_cell(self) -> bool:
        return True

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


class Driver:
    def __init__(self, name: str, agent_fd: int) -> None:
        self._channel = Channel(agent_fd, _NoCell())  # type: ignore[arg-type]
        self._output = OrderedOutput(self._channel)
        self._interrupted = False
        wakeup, signalled = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._wakeup = wakeup
        signal.set_wakeup_fd(signalled)
        signal.signal(signal.SIGINT, self._on_interrupt)
        descriptor, self._run_file = tempfile.mkstemp(prefix="run-", suffix=".json")
        os.close(descriptor)
        os.environ["CLOISTER_RUN_FILE"] = self._run_file
        self._kernel = Kernel(kernelspec.find(name, kernelspec.folders(os.environ)))
        self._language: dict[str, Any] = {}
        self._preparation: Preparation | None = None
        self._input_for: JupyterMessage | None = None
        self._stdin_fd: int | None = None
        self._typed = b""

    # --- Life ---

    def serve(self) -> int:
        """Until the agent or the kernel is gone; answers the kernel's end_status."""
        try:
            self._greet()
            while (message := self._next()) is not None:
                if not self._run(Request.of(message)):
                    break
            return self._kernel.shut_down()
        except KernelEnded:
            return self._kernel.end_status() or 0
        finally:
            self._kernel.clear_away()
            os.unlink(self._run_file)

    def _asked_exit(self) -> int | None:
        """The code with which the run asked to end, where the kernel has no word for that."""
        try:
            with open(self._run_file + ".exit") as file:
                code = int(file.read(16)) & 0xFF
            os.unlink(self._run_file + ".exit")
        except (OSError, ValueError):
            return None
        return code

    def _greet(self) -> None:
        """Asks until the kernel answers on both ways: what it says before it knows of a subscriber is lost."""
        heard, info = False, None
        while not heard or info is None:
            self._kernel.send("shell", "kernel_info_request", {})
            self._wait(_ASK_AGAIN_MS, agent=False)
            while (reply := self._kernel.receive("shell")) is not None:
                info = reply.content
            while self._kernel.receive("iopub") is not None:
                heard = True
        language = info.get("language_info")
        self._language = language if isinstance(language, dict) else {}
        self._preparation = preparation(str(self._language.get("name", "")))
        if self._preparation is not None and self._preparation.begin:
            self._execute(self._preparation.begin, shown=False)
        version = str(self._language.get("version", ""))
        self._channel.send("kernel_info_reply", {"language": str(self._language.get("name", "")), "version": version})

    def _next(self) -> Message | None:
        """The next request. What the kernel says between runs belongs to nobody."""
        while not self._wait(None, agent=True):
            for name in ("iopub", "shell", "stdin"):
                while self._kernel.receive(name) is not None:
                    pass
        return self._channel.receive()

    def _wait(self, timeout_ms: int | None, *, agent: bool) -> bool:
        """Until anything happens; answers whether it is a message of the agent."""
        poller = zmq.Poller()
        self._kernel.register(poller)
        poller.register(self._wakeup, zmq.POLLIN)
        if agent:
            poller.register(self._channel.fileno(), zmq.POLLIN)
        if self._input_for is not None and self._stdin_fd is not None:
            poller.register(self._stdin_fd, zmq.POLLIN)
        ready = dict(poller.poll(timeout_ms))
        with contextlib.suppress(BlockingIOError):
            os.read(self._wakeup, 64)
        if self._stdin_fd in ready:
            self._read_line()
        if self._kernel.end_status() is not None and not self._kernel.has_said_more():
            raise KernelEnded
        return self._channel.fileno() in ready

    def _on_interrupt(self, signum: int, frame: FrameType | None) -> None:
        self._interrupted = True

    # --- One run ---

    def _run(self, request: Request) -> bool:
        """Whether the kernel is still good for another one."""
        self._output.begin()
        self._interrupted = False
        self._stdin_fd, self._typed = request.stdin_fd, b""
        try:
            with self._prepared(request):
                done = self._execute(request.code, shown=True)
        except BadRequest as error:
            self._tell("error", {"ename": "InvalidRequest", "evalue": str(error), "traceback": [str(error)]})
            done = Execution("", shown=True, reply={"status": "error"}, failed=True)
        finally:
            self._input_for = None
            if self._stdin_fd is not None:
                os.close(self._stdin_fd)
                self._stdin_fd = None
        exits = translate.asks_exit(done.reply or {})
        self._reply(done, exits)
        return not exits

    @contextlib.contextmanager
    def _prepared(self, request: Request) -> Iterator[None]:
        """Directory, environment and arguments of the run."""
        if request.cwd is not None and not (os.path.isdir(request.cwd) and os.access(request.cwd, os.X_OK)):
            raise BadRequest(f"cannot enter the working directory {request.cwd}")
        argv = request.argv or ([request.filename] if request.filename is not None else None)
        if request.cwd is None and not request.env and argv is None:
            yield
            return
        way = self._preparation
        if way is None:
            self._refuse_what_it_cannot(request)
            yield
            return
        with open(self._run_file, "w") as file:
            json.dump({"cwd": request.cwd, "env": request.env, "argv": argv}, file)
        try:
            self._silently(way.enter)
            yield
        finally:
            self._silently(way.leave)

    def _refuse_what_it_cannot(self, request: Request) -> None:
        asked = [name for name in ("cwd", "env") if getattr(request, name)]
        asked += ["argv"] if request.argv and len(request.argv) > 1 else []
        if asked:
            language = self._language.get("name") or self._kernel.spec.name
            raise BadRequest(f"`{'`, `'.join(asked)}` of a run cannot be set in a kernel of {language}: do it in the code")

    def _silently(self, code: str) -> None:
        done = self._execute(code, shown=False)
        reply = done.reply or {}
        if reply.get("status") != "ok" and not self._interrupted:
            raise BadRequest(translate.error(reply)["evalue"] or "the kernel refused to prepare the run")

    def _execute(self, code: str, *, shown: bool) -> Execution:
        content = {
            "code": code,
            "silent": not shown,
            "store_history": shown,
            "user_expressions": {},
            "allow_stdin": shown and self._stdin_fd is not None,
            "stop_on_error": False,
        }
        execution = Execution(self._kernel.send("shell", "execute_request", content), shown)
        told = False
        while not execution.over():
            self._wait(_ASK_AGAIN_MS if execution.reply is not None else None, agent=False)
            if self._interrupted and not told:
                told = True
                self._kernel.interrupt()
            self._take_all(execution)
        return execution

    def _take_all(self, execution: Execution) -> None:
        """The reply comes last: it may have overtaken output of the run, but nothing follows the word `idle`."""
        while (message := self._kernel.receive("stdin")) is not None:
            self._on_input_request(execution, message)
        while (message := self._kernel.receive("iopub")) is not None:
            self._on_iopub(execution, message)
        while (message := self._kernel.receive("shell")) is not None:
            if message.parent_id == execution.msg_id and message.msg_type == "execute_reply":
                execution.reply = message.content
                execution.idle_until = time.monotonic() + _IDLE_WAIT_S

    def _on_iopub(self, execution: Execution, message: JupyterMessage) -> None:
        if message.msg_type == "status" and message.parent_id == execution.msg_id:
            self._on_status(execution, message.content.get("execution_state"))
        told = translate.translated(message.msg_type, message.content) if execution.shown else None
        match told:
            case translate.Output(fd, text):
                self._output.write(fd, text)
            case translate.Told(msg_type, content):
                execution.failed |= msg_type == "error"
                self._tell(msg_type, content)

    def _on_status(self, execution: Execution, state: object) -> None:
        if state == "idle":
            execution.idle = True
        elif state == "busy" and execution.shown and not execution.busy:
            execution.busy = True
            self._tell("status", {"execution_state": "busy"})

    # --- Input ---

    def _on_input_request(self, execution: Execution, message: JupyterMessage) -> None:
        """A kernel that asks although it was told that it must not gets the end of the file, and the run fails. It is not
        interrupted: one that heeds that leaves the answer to its next question, of another run."""
        if self._stdin_fd is None:
            if not execution.failed:
                execution.failed = True
                self._tell("error", {"ename": "EOFError", "evalue": _NO_STDIN, "traceback": [f"EOFError: {_NO_STDIN}"]})
            self._answer(message, _END_OF_FILE)
            return
        self._input_for = message
        prompt = message.content.get("prompt")
        if isinstance(prompt, str) and prompt:
            self._output.write(1, prompt)
        if b"\n" in self._typed:
            self._answer_input()

    def _read_line(self) -> None:
        """Of the run's stdin, which ends when its client says so."""
        assert self._stdin_fd is not None
        read = os.read(self._stdin_fd, _LINE_READ)
        self._typed += read
        if b"\n" in read or not read:
            self._answer_input()

    def _answer_input(self) -> None:
        line, newline, self._typed = self._typed.partition(b"\n")
        ended = not line and not newline
        if self._input_for is not None:
            self._answer(self._input_for, _END_OF_FILE if ended else line.decode("utf-8", "replace"))
            self._input_for = None

    def _answer(self, question: JupyterMessage, value: str) -> None:
        self._kernel.send("stdin", "input_reply", {"status": "ok", "value": value}, question.header)

    # --- The end of a run ---

    def _reply(self, done: Execution, exits: bool) -> None:
        reply = done.reply or {}
        if reply.get("status") == "error" and not done.failed:
            self._tell("error", translate.error(reply))
        elif self._interrupted and not done.failed:
            said = "the run was interrupted"
            self._tell("error", {"ename": "Interrupted", "evalue": said, "traceback": [f"Interrupted: {said}"]})
            done.failed = True
        for page in translate.pages(reply):
            self._tell(page.msg_type, page.content)
        good = reply.get("status") == "ok" and not done.failed
        code = 0 if good else 128 + signal.SIGINT if self._interrupted else 1
        if (asked := self._asked_exit()) is not None and not done.failed:
            code = asked
        content = {
            "status": "ok" if code == 0 else "error",
            "execution_count": translate.execution_count(reply),
            "exit_code": code,
            "cwd": self._kernel.cwd(),
            "state_lost": exits,
            "disk_error": 0 if code == 0 else -1,
        }
        self._tell("execute_reply", content)

    def _tell(self, msg_type: str, content: dict[str, Any]) -> None:
        self._output.send(msg_type, content)


def main(name: str, agent_fd: int) -> int:
    """Ends as the kernel did, so that the agent says the truth about it."""
    try:
        status = Driver(name, agent_fd).serve()
    except kernelspec.NoKernelspec as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:  # the kernel's program is not there, or the agent is gone
        print(f"the Jupyter kernel `{name}` cannot be run: {error}", file=sys.stderr)
        return 1
    if status < 0:
        signal.signal(-status, signal.SIG_DFL) if -status not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -status)
    return status
