"""The repository as the checks see it: paths and texts."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from cpp import Source


@dataclasses.dataclass(frozen=True, order=True)
class Finding:
    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


class Tree:
    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts
        self._sources: dict[str, Source] = {}

    @classmethod
    def from_git(cls, root: Path) -> Tree:
        """All files that git knows or would add; those that are not text are left out."""
        command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
        texts = {}
        for name in filter(None, names):
            try:
                texts[name] = (root / name).read_text()
            except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
                continue
        return cls(texts)

    def paths(self, *endings: str, under: str = "") -> Iterator[str]:
        return (path for path in self.texts if path.endswith(endings) and path.startswith(under))

    def sources(self) -> Iterator[tuple[str, Source]]:
        """Our C++ files."""
        for path in self.paths(".h", ".cc", under="src/"):
            if path not in self._sources:
                self._sources[path] = Source(self.texts[path])
            yield path, self._sources[path]

    @cached_property
    def folders(self) -> set[str]:
        return {str(parent) for path in self.texts for parent in Path(path).parents}

    def has(self, path: str) -> bool:
        return path in self.texts or path in self.folders
