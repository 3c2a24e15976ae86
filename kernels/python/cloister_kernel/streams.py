"""stdin, stdout and stderr of the interpreter.

Text goes straight to fds 1 and 2, line by line, so that it is live and mixes well with what C code and child
processes write there. The agent reads two pipes, so before one stream is written after the other, a sync
makes sure that the first has been read: the order of writing is the order of reading.
"""

from __future__ import annotations

import builtins
import ctypes
import io
import os
import select
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from .channel import Channel, private_fd

_BUFFER = 64 * 1024
_PARTIAL_LINE_S = 0.02  # text without a line end is shown at once if the last such text is older than this
_SMALL = 1024  # characters; a pipe that can be written takes four times as many bytes at once
_IOLBF = 1
_MESSAGE = object()

_libc = ctypes.CDLL(None)
_c_stdout = ctypes.c_void_p.in_dll(_libc, "stdout")


_UNGUARDED: AbstractContextManager[object] = nullcontext()


class _OrderedFile(io.FileIO):
    """fd 1 or 2; all bytes of Python's stream come through here."""

    def __init__(self, fd: int, name: str, streams: Streams) -> None:
        super().__init__(fd, "w", closefd=False)
        self.name = name
        self._streams = streams
        self._room = select.poll()
        self._room.register(fd, select.POLLOUT)

    def holds(self) -> None:
        """Something was written to its stream that is not here yet."""
        self._streams.held_back = self

    def write(self, data: Any, /) -> int:
        self._streams.claim(self)
        return super().write(data) or 0

    def whole(self, size: int) -> AbstractContextManager[object]:
        """An interrupt waits for the end of a small write that need not wait for its reader. Behind the system call, and
        before the buffer knows of it, it would have the same text written once more."""
        return self._streams.interrupts if size <= _SMALL and self._room.poll(0) else _UNGUARDED


class _LiveText(io.TextIOWrapper):
    _shown = 0.0
    _bytes: _LiveBytes | None = None
    file: _OrderedFile
    holds_text = False  # some may not have reached the bytes' buffer

    def write(self, text: str, /) -> int:
        with self.file.whole(len(text)):
            written = super().write(text)
            if text[-1:] != "\n":
                self.holds_text = not self.show_now_and_then()
        return written

    def show_now_and_then(self) -> bool:
        now = time.monotonic()
        if now - self._shown <= _PARTIAL_LINE_S:
            self.file.holds()
            return False
        self._shown = now
        self.flush()
        return True

    @property
    def buffer(self) -> _LiveBytes:  # type: ignore[override]
        """What user code writes bytes to; text takes the shorter way."""
        if self._bytes is None:
            self._bytes = _LiveBytes(self, super().buffer)
        return self._bytes


class _LiveBytes(io.BufferedIOBase):
    """sys.stdout.buffer: in its order among the text, and shown as soon as that."""

    def __init__(self, text: _LiveText, buffered: Any) -> None:
        self._text = text
        self._buffered = buffered

    def write(self, data: Any, /) -> int:
        if self._text.holds_text:
            self._text.flush()
            self._text.holds_text = False
        written = self._buffered.write(data)
        if bytes(memoryview(data).cast("B")[-1:]) == b"\n":
            self._buffered.flush()
        else:
            self._text.show_now_and_then()
        return written

    def flush(self) -> None:
        self._text.flush()

    def close(self) -> None:
        self._text.close()

    def detach(self) -> Any:
        return self._buffered.detach()

    def fileno(self) -> int:
        return self._buffered.fileno()

    def isatty(self) -> bool:
        return self._buffered.isatty()

    def writable(self) -> bool:
        return True

    @property
    def closed(self) -> bool:
        return self._buffered.closed

    @property
    def raw(self) -> Any:
        return self._buffered.raw

    @property
    def name(self) -> Any:
        return self._buffered.name

    @property
    def mode(self) -> Any:
        return self._buffered.mode


def _install_print() -> None:
    """Makes print() one write, shown at once. The built-in one writes piece by piece, and nobody could tell
    a first piece from a text without a line end that the user waits to see.
    """
    builtin_print = builtins.print

    def print(*values: object, sep: Any = " ", end: Any = "\n", file: Any = None, flush: bool = False) -> None:
        stream = sys.stdout if file is None else file
        between, behind = " " if sep is None else sep, "\n" if end is None else end
        if type(stream) is not _LiveText or not isinstance(between, str) or not isinstance(behind, str):
            builtin_print(*values, sep=sep, end=end, file=file, flush=flush)
            return
        text = between.join(map(str, values)) + behind
        with stream.file.whole(len(text)):
            io.TextIOWrapper.write(stream, text)
            if flush or text[-1:] != "\n":  # else it is shown already
                stream.flush()

    print.__doc__ = builtin_print.__doc__
    builtins.print = print


class Streams:
    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.interrupts = channel.interrupts
        # What was written last: a stream, a message (_MESSAGE), or nothing that has an order to keep.
        self._last: object = None
        self.held_back: _OrderedFile | None = None
        self._flushes = False
        self._pipes = {1: private_fd(1), 2: private_fd(2)}
        self._null = private_fd(0)  # /dev/null, until a run brings a stdin
        # C code that prints is live too. Only stdout: stderr is never buffered.
        _libc.setvbuf(_c_stdout, None, _IOLBF, 0)
        self._stdout = self._open(1, "<stdout>")
        self._stderr = self._open(2, "<stderr>")
        sys.stdout, sys.stderr = self._stdout, self._stderr
        self._has_stdin = False
        sys.stdin = self._open_stdin()
        _install_print()

    @property
    def has_stdin(self) -> bool:
        return self._has_stdin

    def claim(self, file: _OrderedFile) -> None:
        """`file` is about to be written: wait until what was written elsewhere has been read."""
        held_back, self.held_back = self.held_back, None
        if self._last is file and held_back in (None, file):
            return
        # What the other one still holds comes first: its write ends up here, too, and must not flush ours again.
        if self._last is not None and not self._flushes:
            self._flushes = True
            try:
                self._flush_other(file)
            finally:
                self._flushes = False
        before, self._last = self._last, file
        if before is not None and before is not file:
            self._channel.sync()

    def message_sent(self) -> None:
        """A display was sent: what is written next must not be read before it."""
        self._last = _MESSAGE

    def flush(self) -> None:
        ours = (self._stdout, self._stderr)
        theirs = (stream for stream in (sys.stdout, sys.stderr) if stream is not ours[0] and stream is not ours[1])
        for stream in (*theirs, *ours):
            try:
                stream.flush()
            except Exception:  # a stream that user code closed or replaced is its own affair
                pass
        _libc.fflush(_c_stdout)

    @contextmanager
    def handed_over(self) -> Iterator[None]:
        """While a child process writes to the same fds."""
        self.flush()
        self._channel.sync()
        try:
            yield
        finally:
            self._channel.sync()
            self._last = None

    def restore(self) -> None:
        """After a run: puts back what it may have closed or redirected at fd level."""
        for fd, pipe in self._pipes.items():
            os.dup2(pipe, fd)
        if self._stdout.closed:
            self._stdout = sys.stdout = self._open(1, "<stdout>")
        if self._stderr.closed:
            self._stderr = sys.stderr = self._open(2, "<stderr>")
        self._last = None

    def attach_stdin(self, fd: int) -> None:
        os.dup2(fd, 0)
        os.close(fd)
        self._has_stdin = True
        sys.stdin = self._open_stdin()

    def detach_stdin(self) -> None:
        """Also what user code did to fd 0 or sys.stdin ends with the run."""
        os.dup2(self._null, 0)
        self._has_stdin = False
        sys.stdin = self._open_stdin()

    def _flush_other(self, file: _OrderedFile) -> None:
        other = self._stderr if file.fileno() == 1 else self._stdout
        if not other.closed:
            other.flush()
        _libc.fflush(_c_stdout)

    def _open(self, fd: int, name: str) -> _LiveText:
        file = _OrderedFile(fd, name, self)
        text = _LiveText(io.BufferedWriter(file, _BUFFER), encoding="utf-8", errors="backslashreplace", line_buffering=True)
        text.file = file
        return text

    def _open_stdin(self) -> io.TextIOWrapper:
        file = io.FileIO(0, "r", closefd=False)
        file.name = "<stdin>"
        return io.TextIOWrapper(io.BufferedReader(file), encoding="utf-8", errors="surrogateescape")
