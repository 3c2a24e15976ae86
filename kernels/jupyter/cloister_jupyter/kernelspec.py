"""Kernelspecs: folders `kernels/NAME` with a kernel.json, in the places where Jupyter looks."""

from __future__ import annotations

import json
import os
import re
import string
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_FILE_MAX = 64 * 1024


class NoKernelspec(Exception):
    """Its text says what is wrong, and what there is."""


@dataclass
class Kernelspec:
    name: str
    folder: Path
    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)
    interrupt_mode: str = "signal"

    def command(self, connection_file: str) -> list[str]:
        words = {"connection_file": connection_file, "resource_dir": str(self.folder), "prefix": sys.prefix}
        return [re.sub(r"\{(\w+)\}", lambda m: words.get(m[1], m[0]), word) for word in self.argv]

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """`${NAME}` in a value stands for a variable of the context."""
        own = {name: string.Template(value).safe_substitute(base) for name, value in self.env.items()}
        return {**base, **own}


def folders(environment: Mapping[str, str]) -> list[Path]:
    """Where kernelspecs lie, the user's before the system's."""
    home = Path(environment.get("HOME", "/"))
    given = [Path(path) for path in environment.get("JUPYTER_PATH", "").split(":") if path]
    own = Path(environment.get("JUPYTER_DATA_DIR") or home / ".local/share/jupyter")
    system = [Path(sys.prefix, "share/jupyter"), Path("/usr/local/share/jupyter"), Path("/usr/share/jupyter")]
    return [path / "kernels" for path in dict.fromkeys([*given, own, *system])]


def find(name: str, places: list[Path]) -> Kernelspec:
    """The first of that name, in whatever case."""
    if not _NAME.fullmatch(name):
        raise NoKernelspec(f"`{name}` cannot be the name of a Jupyter kernel: it has letters, digits and ._- only")
    for folder in _all(places):
        if folder.name.lower() == name.lower():
            return _read(folder)
    known = ", ".join(sorted({folder.name for folder in _all(places)}))
    raise NoKernelspec(f"no Jupyter kernel `{name}` is installed here: there is {known or 'none'}")


def _all(places: list[Path]) -> Iterator[Path]:
    for place in places:
        try:
            yield from (folder for folder in sorted(place.iterdir()) if (folder / "kernel.json").is_file())
        except OSError:  # not there, or not ours to read
            continue


def _read(folder: Path) -> Kernelspec:
    file = folder / "kernel.json"
    try:
        with file.open("rb") as opened:
            spec = json.loads(opened.read(_FILE_MAX))
    except (OSError, ValueError) as error:
        raise NoKernelspec(f"{file} cannot be read: {error}") from error
    fault = _fault_of(spec)
    if fault:
        raise NoKernelspec(f"{file}: {fault}")
    return Kernelspec(folder.name, folder, spec["argv"], spec.get("env", {}), spec.get("interrupt_mode", "signal"))


def _fault_of(spec: Any) -> str | None:
    if not isinstance(spec, dict):
        return "it must be a JSON object"
    argv, env = spec.get("argv"), spec.get("env", {})
    if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv):
        return "`argv` must be a list of words"
    if not isinstance(env, dict) or not all(isinstance(value, str) for value in env.values()):
        return "`env` must map names to texts"
    if spec.get("interrupt_mode", "signal") not in ("signal", "message"):
        return "`interrupt_mode` must be `signal` or `message`"
    return None
