"""Rules on the code itself: coroutines, lengths, calls, headers, dead files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from cpp import Source
from tree import Finding, Tree

FUNCTION_LINES_MAX = 70
RATCHET = "tools/tidy_rules/long_functions.txt"

_FORBIDDEN = {
    "exit": "return an error; only main ends the program",
    "system": "start programs through os, without a shell",
    "popen": "start programs through os, without a shell",
    "atoi": "std::from_chars tells errors apart",
    "sprintf": "fmt::format knows the size",
    "strcpy": "use std::string",
    "strcat": "use std::string",
    "usleep": "wait for what you wait for, with a deadline",
}
_FORBIDDEN_CALL = re.compile(rf"(?<![\w.>])(?:std::|::)?({'|'.join(_FORBIDDEN)})\s*\(")
# Written so that this file does not match itself.
_LEFTOVER = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b")
_NOT_OURS = (".lock", ".csv", ".png", ".svg")


def check_coroutine_conditionals(tree: Tree) -> Iterator[Finding]:
    """No `a ? co_await b : c`: compilers destroy its temporaries twice (design §4)."""
    for path, source in tree.sources():
        for line, statement in source.statements():
            if any(in_conditional(statement, match) for match in re.finditer(r"\bco_await\b", statement)):
                yield Finding(path, line, "no `?:` around co_await: write an if")


def in_conditional(statement: str, await_: re.Match[str]) -> bool:
    """Whether a co_await is a branch or the condition of a `?:`; one in its own arguments is harmless."""
    if "?" in statement[: await_.start()]:
        return True
    depth = 0
    for mark in statement[await_.end() :]:
        depth += {"(": 1, ")": -1}.get(mark, 0)
        if mark == "?" and depth <= 0:
            return True
    return False


def check_coroutine_lambdas(tree: Tree) -> Iterator[Finding]:
    """A coroutine outlives the lambda object that holds its captures: pass them as parameters."""
    for path, source in tree.sources():
        for one in source.lambdas():
            if one.captures and re.search(r"\bco_(await|return|yield)\b", _without_inner_lambdas(one.body)):
                message = f"a lambda that captures [{one.captures}] is no coroutine: pass parameters"
                yield Finding(path, one.line, message)


def _without_inner_lambdas(body: str) -> str:
    for inner in Source(body[1:-1]).lambdas():
        body = body.replace(inner.body, "")
    return body


def check_function_lengths(tree: Tree) -> Iterator[Finding]:
    """At most 70 lines, but for those in the ratchet file, which only shrinks."""
    granted = set(tree.texts.get(RATCHET, "").split())
    used = set()
    for path, name, line, lines in [*_cpp_functions(tree), *_python_functions(tree)]:
        if lines > FUNCTION_LINES_MAX:
            used.add(f"{path}:{name}")
            if f"{path}:{name}" not in granted:
                yield Finding(path, line, f"{name} has {lines} lines, the wall is {FUNCTION_LINES_MAX}: split it")
    for name in sorted(granted - used):
        yield Finding(RATCHET, 1, f"{name} is short now or gone: take it off this list")


def _cpp_functions(tree: Tree) -> Iterator[tuple[str, str, int, int]]:
    for path, source in tree.sources():
        for function in source.functions():
            yield path, function.name, function.line, function.lines


def _python_functions(tree: Tree) -> Iterator[tuple[str, str, int, int]]:
    for path in tree.paths(".py"):
        for node in ast.walk(ast.parse(tree.texts[path])):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield path, node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1


def check_forbidden_calls(tree: Tree) -> Iterator[Finding]:
    for path, source in tree.sources():
        if path.endswith("/main.cc"):
            continue
        for match in _FORBIDDEN_CALL.finditer(source.code):
            yield Finding(path, source.line_at(match.start()), f"no {match[1]}(): {_FORBIDDEN[match[1]]}")


def check_leftovers(tree: Tree) -> Iterator[Finding]:
    for path, text in tree.texts.items():
        if not path.endswith(_NOT_OURS):
            for number, line in enumerate(text.splitlines(), 1):
                match = _LEFTOVER.search(line)
                if match:
                    yield Finding(path, number, f"{match[0]} left: do it, or file an issue and say what is true now")


def check_headers(tree: Tree) -> Iterator[Finding]:
    """A header opens with what it is, and may be included twice."""
    for path in tree.paths(".h", under="src/"):
        text = tree.texts[path]
        if not text.startswith("//"):
            yield Finding(path, 1, "a header opens with a comment: what it is, and its threading contract")
        if "#pragma once" not in text:
            yield Finding(path, 1, "#pragma once is missing")


def check_own_header_first(tree: Tree) -> Iterator[Finding]:
    """foo.cc includes foo.h first, so that the header's own includes are complete."""
    for path, source in tree.sources():
        own = re.sub(r"(_test)?\.cc$", ".h", path)
        if path.endswith(".cc") and not path.endswith("_test.cc") and own in tree.texts:
            expected = f'"{own.removeprefix("src/")}"'
            if not source.includes or source.includes[0][1] != expected:
                yield Finding(path, source.includes[0][0] if source.includes else 1, f"include {expected} first")


def check_dead_headers(tree: Tree) -> Iterator[Finding]:
    included = {name.strip('"') for _, source in tree.sources() for _, name in source.includes}
    for path in tree.paths(".h", under="src/"):
        if path.removeprefix("src/") not in included:
            yield Finding(path, 1, "nothing includes this header")


def check_dead_sources(tree: Tree) -> Iterator[Finding]:
    """CMake globs the folders of rooms, not folders below them."""
    rooms = built_folders(tree.texts.get("CMakeLists.txt", ""))
    for path in tree.paths(".cc", under="src/"):
        if str(PurePosixPath(path).parent) not in rooms:
            yield Finding(path, 1, "no target of CMakeLists.txt builds this file")


def built_folders(cmake: str) -> set[str]:
    """Folders that room() and program() lines of CMakeLists.txt name."""
    rooms = re.findall(r"^(?:static_)?room\((\w+)", cmake, re.MULTILINE) + re.findall(
        r"^room\(\w+ DIR ([\w/]+)", cmake, re.MULTILINE
    )
    programs = re.findall(r"^(?:static_|loaded_)?program\(\S+ (\w+)", cmake, re.MULTILINE)
    return {f"src/{room}" for room in rooms} | {f"src/programs/{program}" for program in programs}


def check_dead_scripts(tree: Tree) -> Iterator[Finding]:
    """A Python file is a test, a program that something names, or imported."""
    for path in tree.paths(".py"):
        name = PurePosixPath(path)
        if name.name.startswith(("test_", "conftest", "__")) or path.startswith("examples/"):
            continue
        named = re.compile(rf"\b{re.escape(name.stem)}\b")
        if not any(named.search(text) for other, text in tree.texts.items() if other != path):
            yield Finding(path, 1, "nothing imports or names this file")


CHECKS = [
    check_coroutine_conditionals,
    check_coroutine_lambdas,
    check_function_lengths,
    check_forbidden_calls,
    check_leftovers,
    check_headers,
    check_own_header_first,
    check_dead_headers,
    check_dead_sources,
    check_dead_scripts,
]
