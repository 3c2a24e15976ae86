"""A page that claims something names the test that shows it, and that test exists.

    `tests/escape/test_x.py::test_name`        a Python test
    `jail/seccomp_test.cc Suite.Name`          a GoogleTest, named from its room on
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree import Finding, Tree

# In this page each row of a table with a column of that name must have a proof.
CLAIMS = "docs/security.md"
COLUMN = "shown by"

_PYTHON = re.compile(r"`([\w./-]+\.py)::(\w+)`")
_GOOGLE = re.compile(r"`([\w./-]+_test\.cc) (\w+)\.(\w+)`")


def check_named_tests(tree: Tree) -> Iterator[Finding]:
    for path in tree.paths(".md"):
        for number, line in enumerate(tree.texts[path].splitlines(), 1):
            for match in _PYTHON.finditer(line):
                if not has_python_test(tree, *match.groups()):
                    yield Finding(path, number, f"there is no test {match[1]}::{match[2]}")
            for match in _GOOGLE.finditer(line):
                if not has_google_test(tree, *match.groups()):
                    yield Finding(path, number, f"there is no test {match[1]} {match[2]}.{match[3]}")


def has_python_test(tree: Tree, path: str, name: str) -> bool:
    return bool(re.search(rf"^(?:async )?def {name}\(", tree.texts.get(path, ""), re.MULTILINE))


def has_google_test(tree: Tree, path: str, suite: str, name: str) -> bool:
    definition = re.compile(rf"^TEST(?:_F|_P)?\(\s*{suite},\s*{name}\s*\)", re.MULTILINE)
    sources = (source for source in tree.paths("_test.cc", under="src/") if source.endswith(f"/{path}"))
    return any(definition.search(tree.texts[source]) for source in sources)


def check_claims_are_shown(tree: Tree) -> Iterator[Finding]:
    shown = False  # whether the table that we are in has the column
    for number, line in enumerate(tree.texts.get(CLAIMS, "").splitlines(), 1):
        if not line.startswith("|"):
            shown = False
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if COLUMN in cells:
            shown = True
        elif shown and not set(line) <= set("|-: ") and not (_PYTHON.search(line) or _GOOGLE.search(line)):
            yield Finding(CLAIMS, number, f"no test shows this: {cells[0]}")


CHECKS = [check_named_tests, check_claims_are_shown]
