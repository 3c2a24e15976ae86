"""Pages say what is true: links lead somewhere, paths and tests exist, and no page names a machine or a registry."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from tree import Finding, Tree

_LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_PATH = re.compile(r"`((?:src|tests|tools|docs|contract|examples|kernels|images)/[\w./*-]+)`")
_TEST = re.compile(r"`(test_\w+)`")

# Hosts that a text may name: this machine, names that are reserved for examples, and XML's own.
_KNOWN_HOSTS = re.compile(
    r"^(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]|(?:[\w-]+\.)*example(?:\.\w+)?|www\.w3\.org)$"
)
_URL = re.compile(r"\bhttps?://(\[[\d:a-f]+\]|[A-Za-z0-9.-]+\.[A-Za-z0-9-]+|localhost)")
# Registries also go by bare names.
_REGISTRY = re.compile(r"\b(?:[\w-]+\.)+(?:debian|npmjs|pythonhosted|nodesource)\.\w+\b|\bpypi\.\w{2,4}\b")
_MACHINE = re.compile(r"(?<![\w.~-])/work/\w+")


def check_links(tree: Tree) -> Iterator[Finding]:
    """Relative links of pages lead to files, and their anchors to headings."""
    for path in tree.paths(".md"):
        text = _FENCE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), tree.texts[path])
        for match in _LINK.finditer(text):
            problem = link_problem(tree, path, match[1])
            if problem:
                yield Finding(path, text[: match.start()].count("\n") + 1, problem)


def link_problem(tree: Tree, page: str, link: str) -> str | None:
    if re.match(r"\w+:", link):
        return None
    target, _, anchor = link.partition("#")
    full = normal(PurePosixPath(page).parent / target) if target else page
    if not tree.has(full):
        return f"the link leads to {full}, which is not there"
    if anchor and full.endswith(".md") and anchor not in anchors(tree.texts[full]):
        return f"{full} has no heading for #{anchor}"
    return None


def normal(path: PurePosixPath) -> str:
    """The path without `..`."""
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts:
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def anchors(page: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_mentioned_paths(tree: Tree) -> Iterator[Finding]:
    """A path of the repository that a page names is there."""
    for path in tree.paths(".md"):
        for number, line in enumerate(tree.texts[path].splitlines(), 1):
            for match in _PATH.finditer(line):
                if not exists(tree, match[1].rstrip("/")):
                    yield Finding(path, number, f"`{match[1]}` is not there")


def exists(tree: Tree, pattern: str) -> bool:
    if "NAME" in pattern or "ROOM" in pattern:
        return True
    return tree.has(pattern) or ("*" in pattern and any(PurePosixPath(path).match(pattern) for path in tree.texts))


def check_mentioned_tests(tree: Tree) -> Iterator[Finding]:
    """A test that a page names as its proof exists."""
    tests = {
        name for path in tree.paths(".py") for name in re.findall(r"^def (test_\w+)", tree.texts[path], re.MULTILINE)
    }
    tests |= {PurePosixPath(path).stem for path in tree.paths(".py", ".cc")}
    for path in tree.paths(".md"):
        for number, line in enumerate(tree.texts[path].splitlines(), 1):
            for match in _TEST.finditer(line):
                if match[1] not in tests:
                    yield Finding(path, number, f"there is no test `{match[1]}`")


def check_hosts(tree: Tree) -> Iterator[Finding]:
    """No registry, mirror or other host has its name in the repository; they come from the machine's configuration."""
    for path, text in tree.texts.items():
        if path.startswith("tools/tidy_rules/"):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            hosts = [host for host in _URL.findall(line) if not _KNOWN_HOSTS.match(host)]
            for host in hosts + _REGISTRY.findall(line):
                yield Finding(path, number, f"the host {host} is named: take it from the machine's configuration")


def check_machine_paths(tree: Tree) -> Iterator[Finding]:
    """Paths of the machine that this was written on mean nothing elsewhere."""
    for path, text in tree.texts.items():
        for number, line in enumerate(text.splitlines(), 1):
            for match in _MACHINE.finditer(line):
                yield Finding(path, number, f"{match[0]} is a path of one machine")


CHECKS = [check_links, check_mentioned_paths, check_mentioned_tests, check_hosts, check_machine_paths]
