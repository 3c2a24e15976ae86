"""The zygote: this driver, with the usual libraries imported, that is forked into the sandboxes of its nest.

It is started as every driver is, but descriptor 3 takes orders instead of leading to an agent. Who waits for
them and forks is native code (src/programs/zygote); here is what comes before, and what a child does first.
A child that finds that it would differ from an interpreter started in its sandbox ends: then one is started.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import logging
import os
import random
import site
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from IPython.paths import get_ipython_dir

from .driver import Driver
from .shell import CellShell

_NATIVE = "/opt/cloister/lib/libcloister-zygote.so"
_PRELOAD = ("numpy", "pandas", "matplotlib.pyplot")


def serve() -> None:
    """Returns in no process but to end it."""
    with _home_as_in_a_sandbox():
        shell = CellShell.create()
        _warm_up(shell)
        with shell.builtin_trap:  # libraries ask get_ipython() where they are: pandas, for the width of its tables
            preloaded = _preload()
    sources = _Sources(preloaded)
    blas = _Blas.find()
    _shed_threads()
    gc.collect()
    gc.freeze()  # a collection in a child must not copy what all share
    _wait_to_be_forked()
    _begin(shell, sources, blas)


# --- In the zygote ---


def _preload() -> set[str]:
    """Imports what the template has of the list; answers the names that this took from who has such a file."""
    before = set(sys.modules)
    for name in _PRELOAD:
        try:
            importlib.import_module(name)
        except ImportError:
            pass  # then its users do not miss it either
    return {name.partition(".")[0] for name in sys.modules.keys() - before}


@contextmanager
def _home_as_in_a_sandbox() -> Iterator[None]:
    """The home directory is read-only here. matplotlib uses it only if it looks writable, and its list of fonts, which
    is slow to make, lies there; IPython makes a directory, and gets its own place later.
    """
    access: Any = os.access
    os.access = lambda path, mode, **more: access(path, mode & ~os.W_OK, **more)
    os.environ["IPYTHONDIR"] = tempfile.mkdtemp()
    try:
        yield
    finally:
        os.access = access
        del os.environ["IPYTHONDIR"]


def _warm_up(shell: CellShell) -> None:
    """A first run finds the machinery of runs loaded."""
    shell.run_cell("pass", store_history=False, silent=True)


def _shed_threads() -> None:
    """A fork takes one thread along. OpenBLAS ends its own before a fork and makes them again when needed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    if len(os.listdir("/proc/self/task")) > 1:
        raise RuntimeError("a library that was preloaded keeps a thread: it cannot be forked")


def _wait_to_be_forked() -> None:
    native = ctypes.PyDLL(_NATIVE)
    python = ctypes.pythonapi
    native.cloister_zygote_serve(
        ctypes.cast(python.PyOS_BeforeFork, ctypes.c_void_p),
        ctypes.cast(python.PyOS_AfterFork_Child, ctypes.c_void_p),
    )


class _Blas:
    """OpenBLAS chose its number of threads by the CPUs of the zygote; a child has those of its sandbox."""

    def __init__(self, library: ctypes.CDLL) -> None:
        # Set as they stand: its function for it would start the threads at once.
        self._counts = [ctypes.c_int.in_dll(library, name) for name in ("blas_num_threads", "blas_cpu_number")]

    @classmethod
    def find(cls) -> _Blas | None:
        with open("/proc/self/maps") as maps:
            paths = {line.split()[-1] for line in maps if "openblas" in line}
        try:
            return cls(ctypes.CDLL(paths.pop())) if paths else None
        except (OSError, ValueError):
            return None

    def use(self, threads: int) -> None:
        for count in self._counts:
            count.value = min(count.value, threads)


class _Sources:
    """What decides what an import finds, as it was when the zygote imported."""

    def __init__(self, preloaded: set[str]) -> None:
        self._preloaded = preloaded
        home = os.path.expanduser("~")
        settings = [home + "/matplotlibrc", home + "/.config/matplotlib", home + "/.matplotlib"]
        self._marks = {path: _mark(path) for path in [*filter(None, sys.path), site.getusersitepackages(), *settings]}

    def unchanged(self) -> bool:
        """Whether a sandbox has added nothing: a change in a directory gives it another time of change.
        In the working directory, which comes first, only what goes by the name of an import counts.
        """
        if any(name.partition(".")[0] in self._preloaded for name in os.listdir()):
            return False
        return all(_mark(path) == mark for path, mark in self._marks.items())


def _mark(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ctime_ns, found.st_mtime_ns


# --- In a child ---


def _begin(shell: CellShell, sources: _Sources, blas: _Blas | None) -> None:
    try:
        driver = Driver(agent_fd=3, shell=shell)
        start = driver.start_request()
        os.environ.clear()
        os.environ.update(start["env"])
        os.chdir(start["cwd"])
        fresh = sources.unchanged()
    except Exception:
        fresh = False
    if not fresh:
        os._exit(1)
    _renew()
    shell.ipython_dir = get_ipython_dir()
    if blas is not None:
        blas.use(len(os.sched_getaffinity(0)))
    driver.serve()


def _renew() -> None:
    """Nothing random, and nothing about time, is shared with another child. Hash seeds are: they cannot be changed."""
    random.seed()
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()
    ssl: Any = sys.modules.get("ssl")
    if ssl is not None:  # OpenSSL notices a fork by the pid, which may be the same in another sandbox
        ssl.RAND_add(os.urandom(32), 32.0)
    multiprocessing: Any = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None:
        multiprocessing.current_process().authkey = os.urandom(32)
    internals: Any = (tempfile, logging)
    internals[0]._name_sequence = None
    internals[1]._startTime = time.time_ns() if isinstance(internals[1]._startTime, int) else time.time()
