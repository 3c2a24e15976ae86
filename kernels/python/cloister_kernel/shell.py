"""The IPython shell of a context: user namespace, magics, history in memory, displays to the agent."""

from __future__ import annotations

import asyncio
import codeop
import linecache
import os
import subprocess
from typing import Any

from IPython.core import page
from IPython.core.autocall import ExitAutocall
from IPython.core.compilerop import CachingCompiler
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from traitlets import Type
from traitlets.config import Config

from . import errors
from .channel import Channel
from .displays import CellDisplayHook, CellFormatter, CellPublisher
from .figures import BACKEND, Figures, InlineBackend
from .history import CellHistory
from .plain_cells import PlainCells
from .streams import Streams


class CellCompiler(CachingCompiler):
    """Names code `<cell N>`, or as the run asks, and keeps its source for tracebacks."""

    filename: str | None = None

    def __init__(self) -> None:
        super().__init__()
        # A cell is complete: `x = (` is a SyntaxError, not the first line of something longer.
        self.flags &= ~(codeop.PyCF_DONT_IMPLY_DEDENT | codeop.PyCF_ALLOW_INCOMPLETE_INPUT)

    def reset_compiler_flags(self) -> None:
        self.flags = 0

    def get_code_name(self, raw_code: str, transformed_code: str, number: int) -> str:
        return self.filename or f"<cell {number}>"

    def cache(self, transformed_code: str, number: int = 0, raw_code: str | None = None) -> str:
        name = self.get_code_name(raw_code or transformed_code, transformed_code, number)
        shown = transformed_code.splitlines(keepends=True)
        raw = (raw_code or "").splitlines(keepends=True)
        if len(raw) == len(shown):  # what was typed (`!ls`) reads better than what it became
            shown = raw
        linecache.cache[name] = (len(transformed_code), None, shown, name)
        return name


class _Exit(ExitAutocall):
    """`exit`, `exit()`, `quit(3)`: ends the run, not the interpreter."""

    def __call__(self, code: object = None) -> None:
        raise SystemExit(code)


class CellShell(InteractiveShell):
    displayhook_class = Type(CellDisplayHook)
    display_pub_class = Type(CellPublisher)
    compiler_class = Type(CellCompiler)

    # pandas asks for this attribute to know that output is not a terminal of 80 columns.
    kernel = None

    # Plain attributes in place of IPython's checked ones: each cell uses them a dozen times.
    execution_count = 1
    history_manager: CellHistory
    last_execution_succeeded = True
    last_execution_result: ExecutionResult | None = None

    channel: Channel
    streams: Streams
    figures: Figures
    plain_cells: PlainCells
    compile: CellCompiler

    @classmethod
    def create(cls) -> CellShell:
        """Call connect() before anything is shown."""
        config = Config()
        config.HistoryManager.enabled = False  # no SQLite file, no thread
        config.InteractiveShell.colors = "NoColor"
        shell: CellShell = cls.instance(config=config)
        shell.plain_cells = PlainCells(shell)
        shell.figures = Figures(shell)
        shell.configurables.append(InlineBackend(parent=shell))
        shell.set_hook("show_in_pager", page.as_hook(page.display_page), 90)
        for name in ("bash", "sh"):
            shell.register_magic_function(_script_magic(shell, name), "cell", name)
        return shell

    def connect(self, channel: Channel, streams: Streams) -> None:
        self.channel, self.streams = channel, streams

    def send(self, msg_type: str, content: dict[str, Any], *, soon: bool = False) -> None:
        self.streams.flush()
        self.channel.send(msg_type, content, soon=soon)
        self.streams.message_sent()

    # --- IPython's extension points ---

    def init_display_formatter(self) -> None:
        self.display_formatter = CellFormatter(parent=self)
        self.configurables.append(self.display_formatter)

    def init_history(self) -> None:
        self.history_manager = CellHistory(shell=self, parent=self)
        self.configurables.append(self.history_manager)

    def transform_cell(self, raw_cell: str) -> str:
        plain = self.plain_cells.text_of(raw_cell)
        transformed: str = super().transform_cell(raw_cell) if plain is None else plain
        return transformed

    def _exiter_default(self) -> ExitAutocall:
        return _Exit(self)

    async def run_code(self, code_obj: Any, result: ExecutionResult | None = None, *, async_: bool = False) -> bool:
        try:
            if async_:
                await eval(code_obj, self.user_global_ns, self.user_ns)
            else:
                exec(code_obj, self.user_global_ns, self.user_ns)
        except SystemExit as error:  # an end with a code, not a fault: the driver reports it
            return _failed(result, error)
        except BaseException as error:
            if async_:
                error = _interrupt_of(error)
            self.showtraceback((type(error), error, error.__traceback__))
            return _failed(result, error)
        return False

    def showtraceback(self, exc_tuple: Any = None, *args: Any, **kwargs: Any) -> None:
        _, error, _ = self._get_exc_info(exc_tuple)
        self.last_error = error
        self.send("error", errors.report(error, self.cell_name()))

    def showsyntaxerror(self, *args: Any, **kwargs: Any) -> None:
        self.showtraceback()

    def cell_name(self) -> str:
        return self.compile.get_code_name("", "", self.execution_count)

    def system(self, cmd: str) -> None:
        """`!cmd`: on our own stdin, stdout and stderr, so that it is live."""
        command = self.var_expand(cmd, depth=1)
        with self.streams.handed_over():
            code = subprocess.call(command, shell=True, executable=os.environ.get("SHELL"))
        self.user_ns["_exit_code"] = -(code - 128) if code > 128 else code

    system_piped = system_raw = system

    def enable_gui(self, gui: str | None = None) -> None:
        pass  # there is no screen: charts are images

    def enable_matplotlib(self, gui: str | None = None) -> tuple[str, str]:
        """`%matplotlib inline`, and every other name too: charts are always shown in the output."""
        import matplotlib.pyplot

        matplotlib.pyplot.switch_backend(BACKEND)
        return "inline", BACKEND


def _failed(result: ExecutionResult | None, error: BaseException) -> bool:
    if result is not None:
        result.error_in_exec = error
    return True


def _interrupt_of(error: BaseException) -> BaseException:
    """An interrupt cancels a cell that awaits (see Interrupts): to the user it is the same thing."""
    cell = asyncio.current_task()
    if not isinstance(error, asyncio.CancelledError) or cell is None or not cell.cancelling():
        return error
    cell.uncancel()
    return KeyboardInterrupt().with_traceback(error.__traceback__)


def _script_magic(shell: CellShell, program: str) -> Any:
    """`%%bash` on our own stdout and stderr; IPython's own (with --out and so on) copies byte by byte."""
    general = shell.find_cell_magic(program)

    def run_script(line: str, cell: str) -> None:
        if line.strip():
            general(line, cell)
            return
        with shell.streams.handed_over():
            done = subprocess.run([program], input=cell.encode("utf-8", "replace"), check=False)
        if done.returncode != 0:
            raise subprocess.CalledProcessError(done.returncode, program)

    return run_script
