"""The house rules that a script can check; STYLE.md has them in words.

    tools/tidy [--headers] [ROOT]

Exit codes: 0 clean, 1 findings, each on a line `file:line: what is wrong`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import code_rules
import contracts
import pages
import proofs
import rooms
from tree import Finding, Tree

REPO = Path(__file__).resolve().parent.parent.parent
CHECKS = [*rooms.CHECKS, *code_rules.CHECKS, *contracts.CHECKS, *pages.CHECKS, *proofs.CHECKS]


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/tidy", description="Checks the house rules of STYLE.md.")
    parser.add_argument("root", nargs="?", type=Path, default=REPO, help="the repository (default: this one)")
    parser.add_argument("--headers", action="store_true", help="also compile each header alone (slow)")
    arguments = parser.parse_args()

    tree = Tree.from_git(arguments.root)
    findings = {finding for check in CHECKS for finding in check(tree)}
    if arguments.headers:
        findings |= set(headers_that_need_others(tree, arguments.root))
    for finding in sorted(findings):
        print(finding)
    return 1 if findings else 0


def headers_that_need_others(tree: Tree, root: Path) -> Iterator[Finding]:
    """Headers that do not compile alone. A header whose .cc includes it first is proved by every build."""
    options = ["-std=c++23", "-fsyntax-only", "-x", "c++", "-Wno-pragma-once-outside-header", "-DFMT_HEADER_ONLY"]
    for path in tree.paths(".h", under="src/"):
        if proved_by_its_source(tree, path):
            continue
        command = ["clang++-19", *options, "-I", str(root / "src"), str(root / path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            first = next((line for line in done.stderr.splitlines() if "error:" in line), "it does not compile")
            yield Finding(path, 1, f"not self-contained: {first.rpartition('error: ')[2]}")


def proved_by_its_source(tree: Tree, header: str) -> bool:
    source = tree.texts.get(header.removesuffix(".h") + ".cc", "")
    first = next((line for line in source.splitlines() if line.startswith("#include")), "")
    return first == f'#include "{header.removeprefix("src/")}"'


if __name__ == "__main__":
    sys.exit(main())
