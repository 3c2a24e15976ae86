"""A C++ file without its comments and literals, and the pieces that the checks look at.

No compiler: braces, parentheses and words are enough for house rules on formatted code.
"""

from __future__ import annotations

import dataclasses
import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property

# Raw strings, comments, strings, characters; a ' inside a number (1'000) is none of them.
_LITERALS = re.compile(
    r"""R"(?P<tag>[^()\s]*)\(.*?\)(?P=tag)"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'""",
    re.DOTALL,
)
_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"][^>"]+[>"])', re.MULTILINE)
_SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b[^;(){}=]*$")
# What stands between the parameters of a function and its body.
_HEAD = re.compile(r"\)\s*(?:const|noexcept|override|final|mutable|&&?|->\s*[\w:<>,\s*&()]+|\s)*$")
_INITIALISER = re.compile(r"(?<=[\w>])\{[^{}]*\}")
_NAME = re.compile(r"([~\w:]+|operator\s*\S+)\s*$")
_LAMBDA = re.compile(r"(?:^|[=(,{;&|]|\breturn\b)\s*\[(?P<captures>[^\[\]]*)\]\s*(?=[({<])")
_CONTROL = {"if", "for", "while", "switch", "catch"}


@dataclasses.dataclass(frozen=True)
class Function:
    name: str
    line: int
    lines: int


@dataclasses.dataclass(frozen=True)
class Lambda:
    captures: str
    line: int
    body: str


class Source:
    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def code(self) -> str:
        """The text with comments and literals blanked; offsets and line numbers stay the same."""
        return _LITERALS.sub(_blank, self.text)

    def line_at(self, offset: int) -> int:
        return bisect_right(self._line_starts, offset)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0] + [match.end() for match in re.finditer("\n", self.text)]

    @cached_property
    def includes(self) -> list[tuple[int, str]]:
        """Line and name, with its quotes or angles."""
        return [(self.line_at(match.start(1)), match[1]) for match in _INCLUDE.finditer(self.text)]

    def functions(self) -> Iterator[Function]:
        """Functions with a body at namespace or class level; lambdas count to the function around them."""
        open_braces: list[str] = []  # "scope" of a namespace or class, or "block"
        start: tuple[str, int, int] | None = None  # of the function that we are in: name, offset, depth
        for match in re.finditer(r"[{}]", self._bodies):
            if match[0] == "}":
                if open_braces:
                    open_braces.pop()
                if start and len(open_braces) == start[2]:
                    yield self._function(start[0], start[1], match.start())
                    start = None
                continue
            head = self._head(match.start())
            scope = _SCOPE.search(head) is not None
            name = None if scope or "block" in open_braces else _function_name(head)
            if name:
                start = (name, match.start() - len(head.lstrip()), len(open_braces))
            open_braces.append("scope" if scope else "block")

    @cached_property
    def _bodies(self) -> str:
        """The code without brace initialisers, which formatted code writes right behind a name."""
        code, before = self.code, ""
        while code != before:
            code, before = _INITIALISER.sub(_blank, code), code
        return code

    def _function(self, name: str, begin: int, end: int) -> Function:
        first, last = self.line_at(begin), self.line_at(end)
        return Function(name, first, last - first + 1)

    def _head(self, brace: int) -> str:
        """What stands before a brace, back to the end of the statement before it."""
        begin = max(self._bodies.rfind(mark, 0, brace) for mark in ";{}") + 1
        return re.sub(r"^\s*(#[^\n]*\n\s*|public:\s*|private:\s*|protected:\s*)+", _blank, self._bodies[begin:brace])

    def lambdas(self) -> Iterator[Lambda]:
        for match in _LAMBDA.finditer(self.code):
            body = self.code.find("{", match.end())
            if body >= 0:
                yield Lambda(match["captures"].strip(), self.line_at(match.end()), self._block(body))

    def _block(self, brace: int) -> str:
        """From an opening brace to its closing one."""
        depth = 0
        for match in re.finditer(r"[{}]", self.code[brace:]):
            depth += 1 if match[0] == "{" else -1
            if depth == 0:
                return self.code[brace : brace + match.end()]
        return self.code[brace:]

    def statements(self) -> Iterator[tuple[int, str]]:
        """Pieces between `;`, `{` and `}` with the line they begin in."""
        for match in re.finditer(r"[^;{}]+", self.code):
            text = match[0].strip()
            if text:
                yield self.line_at(match.start() + len(match[0]) - len(match[0].lstrip())), text


def _blank(match: re.Match[str]) -> str:
    """White space of the same shape."""
    return re.sub(r"[^\n]", " ", match[0])


def _function_name(head: str) -> str | None:
    """The name of the function whose body follows `head`, or None if no function does."""
    head = re.sub(r"(?<!:):(?!:)[^:].*$", "", head, flags=re.DOTALL) if re.search(r"\)\s*:(?!:)", head) else head
    if not _HEAD.search(head):
        return None
    opening = head.find("(")
    name = _NAME.search(head[:opening])
    return name[1] if name and name[1] not in _CONTROL else None
