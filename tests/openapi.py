"""contract/openapi.yaml as data: its operations, and a check of answers against its schemas.

    contract = Contract.load()
    contract.check("createSandbox", response.status_code, response.headers, response.content)

Only the keywords that the contract uses are known; a new one is an error until it is checked here too.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

CONTRACT = Path(__file__).resolve().parent.parent / "contract" / "openapi.yaml"
METHODS = ("get", "put", "post", "delete", "patch", "head", "options")

# Errors that any operation may answer, whatever it names itself: they come from before it is reached.
BEFORE_OPERATIONS = {400, 403, 408, 413, 431, 503}

Schema = dict[str, Any]


# What the operations need at least that need a body.
BODIES: dict[str, dict[str, Any]] = {
    "createRun": {"code": "1"},
    "changeFile": {"mode": "0600"},
    "makeDirectory": {"path": "x"},
    "moveFile": {"path": "x", "to": "y"},
    "copyFile": {"path": "x", "to": "y"},
    "signFile": {"path": "x"},
    "createProcess": {"command": "true"},
    "signalProcess": {"signal": "TERM"},
    "resizeTerminal": {"cols": 80},
    "publishPort": {"port": 8000},
    "setNetwork": {"mode": "disabled"},
}


class ContractError(AssertionError):
    """An answer, or the contract itself, is not as the contract says."""


@dataclasses.dataclass(frozen=True)
class Operation:
    id: str
    method: str
    path: str
    needs_key: bool
    request: Schema | None  # of a JSON body
    responses: dict[str, Any]

    def url(self, **parameters: str) -> str:
        """The path with its parameters filled in; those that are not named get a valid value of nothing."""
        nothing = dict.fromkeys(("sandbox_id", "context_id", "process_id", "run_id", "key_id"), "a" * 20)
        values = nothing | {"index": "0", "port": "8000", "path": "x"} | parameters
        return self.path.format(**values)


class Contract:
    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self.operations = {operation.id: operation for operation in self._read_operations()}

    @classmethod
    def load(cls, path: Path = CONTRACT) -> Contract:
        return cls(yaml.safe_load(path.read_text()))

    def schema(self, name: str) -> Schema:
        return self._document["components"]["schemas"][name]

    def resolve(self, node: dict[str, Any]) -> dict[str, Any]:
        """The node itself, or what its `$ref` names."""
        while "$ref" in node:
            target: Any = self._document
            for step in node["$ref"].removeprefix("#/").split("/"):
                target = target[step]
            node = target
        return node

    def find(self, method: str, path: str) -> Operation | None:
        """The operation that answers a request, or None."""
        for operation in self.operations.values():
            pattern = re.sub(r"\{\w+\}", "[^/]+", operation.path)
            if method == operation.method and re.fullmatch(pattern, path):
                return operation
        return None

    def check(self, operation_id: str, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Raises a ContractError unless the answer is one that the contract promises for the operation."""
        responses = self.operations[operation_id].responses
        if str(status) not in responses and status in BEFORE_OPERATIONS:
            self.check_error(body, operation_id)
            return
        if str(status) not in responses:
            raise ContractError(f"{operation_id} answered {status}, which the contract does not name: {body[:500]!r}")
        content = self.resolve(responses[str(status)]).get("content")
        if content is None:
            _require(body == b"", operation_id, f"an answer {status} has no body")
            return
        media = headers.get("content-type", "").partition(";")[0]
        _require(media in content, operation_id, f"content type {media!r} is not one of {list(content)}")
        if media == "application/json":
            self.check_value(json.loads(body), content[media]["schema"], operation_id)

    def check_error(self, body: bytes, where: str) -> dict[str, Any]:
        """The error that a body holds, checked."""
        document = json.loads(body)
        self.check_value(document, self.schema("Error"), where)
        return document["error"]

    def check_value(self, value: Any, schema: Schema, where: str) -> None:
        schema = self.resolve(schema)
        unknown = schema.keys() - _KEYWORDS.keys() - _ANNOTATIONS
        _require(not unknown, where, f"tests/openapi.py does not know the keywords {sorted(unknown)}")
        for keyword, argument in schema.items():
            if keyword in _KEYWORDS:
                _KEYWORDS[keyword](self, value, argument, schema, where)

    def _read_operations(self) -> Iterator[Operation]:
        for path, item in self._document["paths"].items():
            for method in METHODS:
                if method in item:
                    yield self._read_operation(path, method, item[method])

    def _read_operation(self, path: str, method: str, node: dict[str, Any]) -> Operation:
        request = node.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
        return Operation(
            id=node["operationId"],
            method=method.upper(),
            path=path,
            needs_key=bool(node.get("security", self._document.get("security"))),
            request=self.resolve(request) if request else None,
            responses=node["responses"],
        )


# --- The keywords, one function each ---


def _require(condition: bool, where: str, problem: str) -> None:
    if not condition:
        raise ContractError(f"{where}: {problem}")


_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}


def _type(_: Contract, value: Any, names: str | list[str], __: Schema, where: str) -> None:
    allowed = [names] if isinstance(names, str) else names
    _require(any(_TYPES[name](value) for name in allowed), where, f"{value!r:.200} is not {' or '.join(allowed)}")


def _enum(_: Contract, value: Any, allowed: list[Any], __: Schema, where: str) -> None:
    _require(value in allowed, where, f"{value!r:.200} is not one of {allowed}")


def _const(_: Contract, value: Any, only: Any, __: Schema, where: str) -> None:
    _require(value == only, where, f"{value!r:.200} is not {only!r}")


def _pattern(_: Contract, value: Any, pattern: str, __: Schema, where: str) -> None:
    matches = not isinstance(value, str) or re.search(pattern, value) is not None
    _require(matches, where, f"{value!r:.200} does not match {pattern}")


def _max_length(_: Contract, value: Any, most: int, __: Schema, where: str) -> None:
    _require(not isinstance(value, str) or len(value) <= most, where, f"longer than {most}")


def _minimum(_: Contract, value: Any, least: int, __: Schema, where: str) -> None:
    _require(not _TYPES["number"](value) or value >= least, where, f"{value!r} is below {least}")


def _maximum(_: Contract, value: Any, most: int, __: Schema, where: str) -> None:
    _require(not _TYPES["number"](value) or value <= most, where, f"{value!r} is above {most}")


def _max_items(_: Contract, value: Any, most: int, __: Schema, where: str) -> None:
    _require(not isinstance(value, list) or len(value) <= most, where, f"more than {most} items")


def _items(contract: Contract, value: Any, schema: Schema, _: Schema, where: str) -> None:
    for index, item in enumerate(value if isinstance(value, list) else []):
        contract.check_value(item, schema, f"{where}[{index}]")


def _required(_: Contract, value: Any, names: list[str], __: Schema, where: str) -> None:
    missing = [name for name in names if isinstance(value, dict) and name not in value]
    _require(not missing, where, f"lacks {missing}")


def _properties(contract: Contract, value: Any, schemas: dict[str, Schema], _: Schema, where: str) -> None:
    for name, schema in schemas.items():
        if isinstance(value, dict) and name in value:
            contract.check_value(value[name], schema, f"{where}.{name}")


def _additional(contract: Contract, value: Any, rest: Schema | bool, schema: Schema, where: str) -> None:
    extra = value.keys() - schema.get("properties", {}).keys() if isinstance(value, dict) else set()
    if rest is False:
        _require(not extra, where, f"has undocumented fields {sorted(extra)}")
    elif isinstance(rest, dict):
        for name in extra:
            contract.check_value(value[name], rest, f"{where}.{name}")


def _format(_: Contract, value: Any, name: str, __: Schema, where: str) -> None:
    if name == "date-time" and isinstance(value, str):
        try:
            zone = datetime.datetime.fromisoformat(value).tzinfo
        except ValueError:
            zone = None
        _require(zone is not None, where, f"{value!r} is not a time with its zone")


_KEYWORDS: dict[str, Callable[[Contract, Any, Any, Schema, str], None]] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "pattern": _pattern,
    "maxLength": _max_length,
    "minimum": _minimum,
    "maximum": _maximum,
    "maxItems": _max_items,
    "items": _items,
    "required": _required,
    "properties": _properties,
    "additionalProperties": _additional,
    "format": _format,
}
_ANNOTATIONS = {"description", "default"}
