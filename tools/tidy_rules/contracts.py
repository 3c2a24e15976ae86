"""The words promised to outsiders are the words of the code: operations, error kinds, end reasons.

The limits are held by a unit test: base/limit_table_test.cc.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from tree import Finding, Tree

OPENAPI, ERRORS = "contract/openapi.yaml", "contract/errors.md"


def check_operations(tree: Tree) -> Iterator[Finding]:
    """Each operation of the contract has its file in src/ops, and each file there is an operation."""
    promised = {snake(name): name for name in re.findall(r"operationId: (\w+)", tree.texts.get(OPENAPI, ""))}
    files = {path.rsplit("/", 1)[1].removesuffix(".h") for path in tree.paths(".h", under="src/ops/")}
    if not files:
        return
    files -= OPS_HELPERS
    for name in sorted(promised.keys() - OPERATIONS_WITHOUT_FILE - {OPERATION_FILES.get(f, f) for f in files}):
        yield Finding(
            OPENAPI, line_of(tree.texts[OPENAPI], promised[name]), f"{promised[name]} has no src/ops/{name}.h"
        )
    for file in sorted(files):
        if OPERATION_FILES.get(file, file) not in promised:
            yield Finding(f"src/ops/{file}.h", 1, f"{OPENAPI} has no operation of this name")


# Liveness is the process itself, so there is nothing to operate on.
OPERATIONS_WITHOUT_FILE = {"healthz", "readyz"}
# One operation whatever the method: connect_port.
OPERATIONS_WITHOUT_FILE |= {"put_to_port", "post_to_port", "delete_from_port", "patch_to_port", "ask_port"}
# Operations whose file has another name than the contract's operation.
OPERATION_FILES = {
    "connect_port": "get_from_port",
    "open_stdin": "attach_process",
    "run_code": "create_run",
    "run_in_new_sandbox": "create_run_in_new_sandbox",
    "start_process": "create_process",
    "status": "get_status",
    "stream_process": "stream_process_events",
    "stream_run": "stream_run_events",
}
# Headers of src/ops that are shared by operations.
OPS_HELPERS = {"file_access", "validate"}


def check_routes(tree: Tree) -> Iterator[Finding]:
    """faces/rest names each path of the contract, and no other."""
    promised = set(yaml.safe_load(tree.texts.get(OPENAPI, "paths: {}"))["paths"])
    served: dict[str, tuple[str, int]] = {}
    for path, source in tree.sources():
        if path.startswith("src/faces/rest/") and not path.endswith("_test.cc"):
            for match in re.finditer(r'"(/(?:v1|healthz|readyz)(?:/\w+|/\{\w+\})*)"', source.text):
                served[match[1]] = (path, source.line_at(match.start()))
    if not served:
        return
    for route in sorted(promised - served.keys()):
        yield Finding(OPENAPI, line_of(tree.texts[OPENAPI], route), f"src/faces/rest does not serve {route}")
    for route in sorted(served.keys() - promised):
        yield Finding(*served[route], f"{OPENAPI} does not promise {route}")


def check_contract_text(tree: Tree) -> Iterator[Finding]:
    """A text with a comma inside `{…}` must stand in quotes, or its rest becomes a key without a value."""
    text = tree.texts.get(OPENAPI, "{}")
    for key in keys_without_value(yaml.safe_load(text)):
        yield Finding(OPENAPI, line_of(text, key), f"`{key}` is read as a key: put the whole text in quotes")


def keys_without_value(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        yield from (str(key) for key, value in node.items() if value is None)
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for child in children:
        yield from keys_without_value(child)


def check_error_kinds(tree: Tree) -> Iterator[Finding]:
    """base/error.cc, errors.md and openapi.yaml know the same kinds."""
    sources = {
        "src/base/error.cc": words_returned(tree, "src/base/error.cc"),
        ERRORS: first_column(tree.texts.get(ERRORS, ""), "kind"),
        OPENAPI: enum_of(tree, "Error", "properties", "error", "properties", "code"),
    }
    yield from differences(sources, "error kind")


def check_end_reasons(tree: Tree) -> Iterator[Finding]:
    """wire/run_end.cc, errors.md and openapi.yaml know the same end reasons."""
    sources = {
        "src/wire/run_end.cc": words_returned(tree, "src/wire/run_end.cc"),
        ERRORS: first_column(tree.texts.get(ERRORS, ""), "end reason"),
        OPENAPI: enum_of(tree, "Run", "properties", "end_reason"),
    }
    yield from differences(sources, "end reason")


def differences(sources: dict[str, set[str]], what: str) -> Iterator[Finding]:
    every = set().union(*sources.values())
    for path, words in sources.items():
        for word in sorted(every - words):
            yield Finding(path, 1, f"{what} `{word}` is missing here")


def words_returned(tree: Tree, path: str) -> set[str]:
    """Words in quotes of a table or a switch that turns an enum into text."""
    return set(re.findall(r'"([a-z]+(?:_[a-z]+)*)"', tree.texts.get(path, "")))


def first_column(page: str, heading: str) -> set[str]:
    """The words in backquotes of the first column of the table with that heading."""
    table = re.search(rf"^\| {heading} \|.*\n\|[-| ]+\n((?:\|.*\n?)*)", page, re.MULTILINE)
    return set(re.findall(r"^\| `(\w+)` \|", table[1], re.MULTILINE)) if table else set()


def enum_of(tree: Tree, schema: str, *steps: str) -> set[str]:
    node = yaml.safe_load(tree.texts.get(OPENAPI, "{}")).get("components", {}).get("schemas", {}).get(schema, {})
    for step in steps:
        node = node.get(step, {})
    return set(node.get("enum", []))


def check_seccomp_comments(tree: Tree) -> Iterator[Finding]:
    """Each entry of the filter's tables says why, beside it or above its group."""
    for path in tree.paths(".cc", ".h", under="src/jail/seccomp"):
        explained = False
        for number, line in enumerate(tree.texts[path].splitlines(), 1):
            text = line.strip()
            if "//" in text:
                explained = True
            elif not text or text.startswith(("}", "constexpr")):
                explained = False
            elif re.match(r"Denied\w*\{", text) and not explained:
                yield Finding(path, number, "a seccomp entry without a comment that says why")


def snake(name: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()


def line_of(text: str, part: str) -> int:
    return text[: max(text.find(part), 0)].count("\n") + 1


CHECKS = [
    check_operations,
    check_routes,
    check_contract_text,
    check_error_kinds,
    check_end_reasons,
    check_seccomp_comments,
]
