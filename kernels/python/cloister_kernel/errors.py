"""An exception as plain data: name, value, traceback lines without colours, and the line of this run's code."""

from __future__ import annotations

import codeop
import errno
import os
import re
import traceback
from typing import Any

from IPython.core import async_helpers, compilerop, interactiveshell
from IPython.core.error import UsageError

_VALUE_MAX = 64 * 1024
_LINE_MAX = 4 * 1024
_LINES_MAX = 400
_CAUSES_MAX = 16
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_MACHINERY = {module.__file__ for module in (interactiveshell, async_helpers, compilerop, codeop)}


def report(error: BaseException, filename: str) -> dict[str, Any]:
    """The content of an `error` message; `filename` names the code of this run."""
    content: dict[str, Any] = {
        "ename": type(error).__name__,
        "evalue": _cut(_text_of(error), _VALUE_MAX),
        "traceback": _lines(error),
        "disk_error": _disk_error(error),
    }
    line = _line(error, filename)
    return content if line is None else {**content, "line": line}


def _disk_error(error: BaseException) -> int:
    """The ENOSPC or EDQUOT behind an error; -1 if it may have been a full disk but does not say so; else 0."""
    suspect = 0
    cause: BaseException | None = error
    for _ in range(_CAUSES_MAX):
        if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT):
            return cause.errno
        # A program that failed, or a library that writes by itself and tells only that it did not work.
        if type(cause).__name__ == "CalledProcessError" or (isinstance(cause, OSError) and cause.errno is None):
            suspect = -1
        if cause is None:
            break
        cause = cause.__cause__ or cause.__context__
    return suspect


def _text_of(error: BaseException) -> str:
    try:
        return _COLOURS.sub("", str(error))
    except Exception:
        return "<the exception's str() failed>"


def _lines(error: BaseException) -> list[str]:
    if isinstance(error, UsageError):  # a magic was called wrongly: our own frames would only confuse
        return [f"UsageError: {_text_of(error)}"]
    formatted = _without_ours(traceback.TracebackException.from_exception(error, compact=True)).format()
    lines = _COLOURS.sub("", "".join(formatted)).rstrip("\n").split("\n")
    if len(lines) > _LINES_MAX:
        half = _LINES_MAX // 2
        note = f"  … {len(lines) - 2 * half} lines are left out …"
        lines = [*lines[:half], note, *lines[-half:]]
    return [_cut(line, _LINE_MAX) for line in lines]


def _without_ours(report: traceback.TracebackException) -> traceback.TracebackException:
    """Leaves out the frames of this package and of the shell, in the exceptions behind it too."""
    report.stack[:] = [frame for frame in report.stack if not _is_ours(frame.filename)]
    for other in (report.__cause__, report.__context__, *(report.exceptions or ())):
        if other is not None:
            _without_ours(other)
    return report


def _is_ours(filename: str) -> bool:
    return filename in _MACHINERY or filename.startswith(_OURS)


def _line(error: BaseException, filename: str) -> int | None:
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == filename else None
    trace = error.__traceback__ if line is None else None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == filename:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else f"{text[:size]}… ({len(text) - size:,} more characters)"
