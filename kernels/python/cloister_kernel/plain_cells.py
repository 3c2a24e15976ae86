"""Cells that are Python as they stand: IPython's search for magics, prompts and the like would leave them alone.

That search takes longer than a small cell does. Whatever is in doubt here goes through it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from IPython.core.autocall import IPyAutocall
from IPython.core.macro import Macro

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

# Magics and shell commands, help, the escapes at the beginning of a line, pasted prompts, indented cells.
_SPECIAL = re.compile(r"[%!?\r\f\v\x1c-\x1e\x85\u2028\u2029]|\A\s|>>>|\.\.\.|In \[|^\s*[,;/]", re.MULTILINE)
_FIRST_NAME = re.compile(r"[^\W\d]\w*")


class PlainCells:
    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._transforms = self._installed()

    def text_of(self, cell: str) -> str | None:
        """The cell as it is to be compiled if it is plain, else None."""
        if _SPECIAL.search(cell) or self._installed() != self._transforms:
            return None
        cell = cell if cell.endswith("\n") else cell + "\n"
        if cell.count("\n") == 1 and not self._is_plain_line(cell):
            return None
        return cell

    def _is_plain_line(self, line: str) -> bool:
        """A single line may call a magic without its `%`, a macro, or `exit` without parentheses."""
        name = _FIRST_NAME.match(line)
        if name is None:
            return line[0] != "\n"
        shell, word = self._shell, name[0]
        if isinstance(shell.user_ns.get(word), (IPyAutocall, Macro)):
            return False
        return not (shell.automagic and shell.find_magic(word)) and not shell.autocall

    def _installed(self) -> tuple[int, ...]:
        """How many transformations there are: user code may add its own."""
        manager, prefilter = self._shell.input_transformer_manager, self._shell.prefilter_manager
        lists = (
            manager.cleanup_transforms, manager.line_transforms, manager.token_transformers,
            self._shell.input_transformers_post, prefilter.transformers, prefilter.checkers,
        )  # fmt: skip
        return tuple(map(len, lists))
