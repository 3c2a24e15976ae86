"""SIGINT: raises KeyboardInterrupt in the running cell, waits while a message is on its way, else is ignored."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType


class Interrupts:
    """Used as a context manager around code that an interrupt must not cut: `with interrupts: send(...)`."""

    def __init__(self) -> None:
        self._armed = False
        self._held = 0
        self._pending = False
        self._cell: asyncio.Task[object] | None = None
        self._main = threading.get_ident()

    def arm(self, asked_before: Callable[[], bool]) -> None:
        """A cell begins. Installs the handler anew: the cell before may have replaced it.

        `asked_before` says whether this cell was interrupted before SIGINT could reach it.
        """
        signal.signal(signal.SIGINT, self._on_signal)
        self._pending = False
        self._armed = True
        if asked_before():
            raise KeyboardInterrupt

    def disarm(self) -> None:
        """The cell is over: from now on interrupts come too late."""
        self._armed = False
        self._cell = None
        signal.signal(signal.SIGINT, self._on_signal)

    def in_cell(self) -> bool:
        """Whether the caller is the thread that runs cells, and in one."""
        return self._armed and threading.get_ident() == self._main

    def watch(self, cell: asyncio.Task[object]) -> None:
        """The cell runs as a task of an event loop."""
        self._cell = cell

    def __enter__(self) -> None:
        if threading.get_ident() == self._main:
            self._held += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if threading.get_ident() != self._main:
            return
        self._held -= 1
        if self._pending and self._held == 0:
            self._pending = False
            self._deliver()

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        if not self._armed:
            return
        if self._held:
            self._pending = True
            return
        self._deliver()

    def _deliver(self) -> None:
        cell = self._cell
        if cell is None or cell.done():
            raise KeyboardInterrupt
        # Inside the loop itself, or in another task, an exception would tear the loop down and leave the
        # cell hanging: cancel the cell instead.
        loop = cell.get_loop()
        if asyncio.current_task(loop) is cell:
            raise KeyboardInterrupt
        loop.call_soon_threadsafe(cell.cancel)
