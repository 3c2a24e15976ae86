"""Functions that a program registers with atexit: called at its end, although the interpreter lives on."""

from __future__ import annotations

import atexit
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_Call = tuple[Callable[..., object], tuple[Any, ...], dict[str, Any]]


class ExitFunctions:
    """Stands before atexit for the life of the interpreter: code may keep a reference to `register`."""

    def __init__(self) -> None:
        self._calls: list[_Call] | None = None
        self._register, self._unregister = atexit.register, atexit.unregister
        atexit.register = self.register
        atexit.unregister = self.unregister

    def register(self, func: Callable[..., object], /, *args: Any, **kwargs: Any) -> Callable[..., object]:
        if self._calls is None:
            return self._register(func, *args, **kwargs)
        self._calls.append((func, args, kwargs))
        return func

    def unregister(self, func: Callable[..., object], /) -> None:
        if self._calls is not None:
            self._calls[:] = [call for call in self._calls if call[0] != func]
        self._unregister(func)

    @contextmanager
    def of_program(self) -> Iterator[None]:
        """What is registered within is called at the end of it, the last one first."""
        self._calls = calls = []
        try:
            yield
        finally:
            try:
                while calls:
                    _call(*calls.pop())
            finally:
                self._calls = None


def _call(func: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    try:
        func(*args, **kwargs)
    except KeyboardInterrupt:
        raise
    except BaseException:  # as in an interpreter that ends: told, and the next one gets its turn
        traceback.print_exc()
