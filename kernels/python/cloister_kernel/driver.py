"""The driver's loop: takes a request, runs its cell, reports how it went."""

from __future__ import annotations

import asyncio
import functools
import os
import platform
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from IPython.core.async_helpers import _pseudo_sync_runner

from . import errors
from .channel import Channel, Message
from .exits import ExitFunctions
from .interrupts import Interrupts
from .shell import CellShell
from .streams import Streams

_NO_STDIN = (
    "this run has no stdin, so input() has nothing to read: send `stdin` with the run, "
    "or pipe text into `cloister run`"
)


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


class Driver:
    def __init__(self, agent_fd: int, shell: CellShell | None = None) -> None:
        self._interrupts = Interrupts()
        self._interrupts.disarm()
        self._channel = Channel(agent_fd, self._interrupts)
        self._streams = Streams(self._channel)
        self._shell = shell or CellShell.create()
        self._shell.connect(self._channel, self._streams)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = os.getpid()
        self._exits = ExitFunctions()
        self._in_cell = False  # of a notebook, not of a program
        self._install_input()
        self._install_create_task()
        os.register_at_fork(before=self._streams.flush, after_in_child=self._leave)

    def start_request(self) -> dict[str, Any]:
        """What a forked interpreter is to begin with."""
        message = self._channel.receive()
        if message is None or message.msg_type != "start_request":
            raise ConnectionError("the agent does not say how to start")
        return message.content

    def serve(self) -> None:
        about = {"language": "python", "version": platform.python_version(), "early_interrupts": True}
        self._send("kernel_info_reply", about)
        while (message := self._next()) is not None:
            self._run(Request.of(message))

    # --- One run ---

    def _run(self, request: Request) -> None:
        self._shell.figures.begin_run()
        error = self._guarded(request)
        self._streams.restore()
        if os.getpid() != self._pid:  # a child that user code forked and let run on
            self._streams.flush()
            os._exit(_exit_code(error))
        code = _exit_code(error)
        reply = {
            "status": "ok" if code == 0 else "error",
            "execution_count": max(self._shell.execution_count - 1, 0),
            "exit_code": code,
            "cwd": _working_directory(),
        }
        self._send("execute_reply", reply)

    def _guarded(self, request: Request) -> BaseException | None:
        """Runs the cell with interrupts on; whatever escapes it is its result."""
        try:
            try:
                self._interrupts.arm(self._channel.take_interrupt)
                return self._execute(request)
            finally:
                self._interrupts.disarm()
        except BaseException as error:
            self._interrupts.disarm()
            self._report(error, request)
            return error

    def _execute(self, request: Request) -> BaseException | None:
        self._shell.last_error = None
        code = request.code.removeprefix("\ufeff")
        with self._environment(request):
            self._in_cell = request.filename is None
            error = self._run_cell(code) if self._in_cell else self._run_program(code)
            if isinstance(error, SystemExit) and not isinstance(error.code, (int, type(None))):
                print(error.code, file=sys.stderr)
            self._streams.flush()
        return error

    def _run_program(self, code: str) -> BaseException | None:
        """A file, as an interpreter of its own runs it: its last expression is not shown, and it ends with
        its threads and what it registered with atexit."""
        others = set(threading.enumerate())
        self._shell.ast_node_interactivity = "none"
        try:
            with self._exits.of_program():
                error = self._run_cell(code)
                _join_new_threads(others)
                return error
        finally:
            self._shell.ast_node_interactivity = "last_expr"

    def _run_cell(self, code: str) -> BaseException | None:
        if not code.strip():
            return self._warm_up()
        shell = self._shell
        failure = None
        transformed = code
        try:
            transformed = shell.transform_cell(code)
        except Exception:
            failure = sys.exc_info()
        coroutine = shell.run_cell_async(
            code, store_history=True, transformed_cell=transformed, preprocessing_exc_tuple=failure
        )
        if failure is None and self._awaits(transformed):
            result = self._run_in_loop(coroutine)
        else:
            result = _pseudo_sync_runner(coroutine)
        self._after_cell(result)
        return result.error_before_exec or result.error_in_exec or shell.last_error

    def _warm_up(self) -> None:
        """An empty cell goes the whole way, and nobody sees anything of it: so the service warms interpreters up."""
        coroutine = self._shell.run_cell_async(
            "None", store_history=False, silent=True, transformed_cell="None\n", preprocessing_exc_tuple=None
        )
        _pseudo_sync_runner(coroutine)

    def _awaits(self, transformed: str) -> bool:
        if "await" not in transformed and "async" not in transformed:
            return False  # without a look by the compiler, which takes longer than a small cell
        try:
            return self._shell.should_run_async("", transformed_cell=transformed)
        except Exception:  # code that does not compile: running it reports that
            return False

    def _after_cell(self, result: Any) -> None:
        shell = self._shell
        shell.events.trigger("post_execute")
        shell.events.trigger("post_run_cell", result)
        try:
            shell.figures.show_open()
        except Exception:  # a chart that cannot be drawn fails here, not in the code that made it
            shell.showtraceback()

    def _run_in_loop(self, coroutine: Any) -> Any:
        """Top-level await: on one loop for all cells, so that tasks live on from cell to cell."""
        loop = self._event_loop()
        task = loop.create_task(coroutine)
        self._interrupts.watch(task)
        return loop.run_until_complete(task)

    def _event_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        return self._loop

    def _report(self, error: BaseException, request: Request) -> None:
        """An error outside of the cell's own code: a bad request, or an interrupt between two steps."""
        if not isinstance(error, SystemExit):
            name = request.filename or self._shell.cell_name()
            self._send("error", errors.report(error.with_traceback(None), name))

    @contextmanager
    def _environment(self, request: Request) -> Iterator[None]:
        """What holds for this run only: stdin, environment, sys.argv, __file__."""
        shell = self._shell
        if request.cwd is not None:
            os.chdir(request.cwd)
        former_env = {name: os.environ.get(name) for name in request.env}
        former_argv = sys.argv
        os.environ.update(request.env)
        sys.argv = request.argv if request.argv is not None else [request.filename or ""]
        shell.compile.filename = request.filename
        if request.filename is not None:
            shell.user_ns["__file__"] = os.path.abspath(request.filename)
        if request.stdin_fd is not None:
            self._streams.attach_stdin(request.stdin_fd)
        try:
            yield
        finally:
            self._streams.detach_stdin()
            shell.compile.filename = None
            shell.user_ns.pop("__file__", None)
            sys.argv = former_argv
            _restore_environment(former_env)

    # --- Between runs ---

    def _next(self) -> Message | None:
        """The next request. Tasks that a cell left behind go on meanwhile."""
        loop = self._loop
        while loop is not None and not loop.is_closed() and asyncio.all_tasks(loop):
            try:
                loop.add_reader(self._channel.fileno(), loop.stop)
                loop.run_forever()
                loop.remove_reader(self._channel.fileno())
            except OSError:  # user code closed the loop's descriptors
                self._loop = loop = None
            if not self._channel.take_interrupt():  # one that came too late
                break
        return self._channel.receive()

    def _send(self, msg_type: str, content: dict[str, Any]) -> None:
        self._streams.flush()
        self._channel.send(msg_type, content)

    def _leave(self) -> None:
        """In a forked child: no more messages, and SIGINT as usual."""
        self._channel.leave()
        self._interrupts.disarm()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def _install_input(self) -> None:
        import builtins

        read_line = builtins.input

        def input(prompt: object = "", /) -> str:
            if not self._streams.has_stdin:
                raise EOFError(_NO_STDIN)
            return read_line(prompt)

        input.__doc__ = read_line.__doc__
        builtins.input = input

    def _install_create_task(self) -> None:
        """A cell that does not await may begin a task, too, as in a notebook, where the loop always runs. Ours does
        not run then, so that asyncio.run() works as in a script; the task waits for it."""
        in_running_loop = asyncio.create_task

        @functools.wraps(in_running_loop)
        def create_task(coro: Any, **options: Any) -> asyncio.Task[Any]:
            in_main = threading.current_thread() is threading.main_thread()
            if self._in_cell and in_main and asyncio._get_running_loop() is None:
                return self._event_loop().create_task(coro, **options)
            return in_running_loop(coro, **options)

        asyncio.create_task = create_task


def _exit_code(error: BaseException | None) -> int:
    match error:
        case None:
            return 0
        case KeyboardInterrupt():
            return 128 + signal.SIGINT
        case SystemExit(code=None):
            return 0
        case SystemExit(code=int(code)):
            return code & 0xFF
    return 1


def _restore_environment(former: dict[str, str | None]) -> None:
    for name, value in former.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _join_new_threads(others: set[threading.Thread]) -> None:
    """Waits for the threads that are not in `others`, as an interpreter does before it ends."""
    while new := [t for t in threading.enumerate() if t not in others and not t.daemon]:
        new[0].join()


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:  # user code removed it
        return ""


def main(agent_fd: int) -> None:
    Driver(agent_fd).serve()
