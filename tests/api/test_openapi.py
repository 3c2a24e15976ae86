"""The validator itself: each keyword must be able to say no."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openapi import CONTRACT as CONTRACT_FILE
from openapi import Contract, ContractError

CONTRACT = Contract.load()

ID = "abcdefghij0123456789"
SANDBOX = {
    "id": ID,
    "template": "base",
    "state": "running",
    "tier": "namespace",
    "cpu": 2,
    "memory_mb": 2048,
    "disk_mb": 10240,
    "idle_timeout_seconds": 1200,
    "on_idle": "pause",
    "metadata": {"who": "me"},
    "created_at": "2026-11-29T19:20:10.123Z",
}


def test_accepts_what_the_contract_shows() -> None:
    CONTRACT.check_value(SANDBOX, CONTRACT.schema("Sandbox"), "sandbox")


@pytest.mark.parametrize(
    "change",
    [
        {"id": "ABC"},
        {"id": ID + "0"},
        {"state": "sleeping"},
        {"tier": "microvm"},
        {"cpu": "2"},
        {"cpu": True},
        {"cpu": 2.5},
        {"metadata": {"who": 1}},
        {"metadata": []},
        {"created_at": "yesterday"},
        {"created_at": "2026-11-29T19:20:10.123"},
        {"colour": "red"},
    ],
    ids=str,
)
def test_refuses_a_wrong_field(change: dict[str, Any]) -> None:
    with pytest.raises(ContractError):
        CONTRACT.check_value(SANDBOX | change, CONTRACT.schema("Sandbox"), "sandbox")


@pytest.mark.parametrize("name", SANDBOX)
def test_refuses_a_missing_field(name: str) -> None:
    rest = {key: value for key, value in SANDBOX.items() if key != name}
    with pytest.raises(ContractError, match=name):
        CONTRACT.check_value(rest, CONTRACT.schema("Sandbox"), "sandbox")


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 3}, [1, 3], [0, 4]),
        ({"type": "string", "maxLength": 2}, ["", "ab"], ["abc"]),
        ({"type": "array", "maxItems": 1, "items": {"type": "string"}}, [[], ["a"]], [["a", "b"], [1]]),
        ({"type": ["integer", "null"]}, [0, None], ["", False]),
    ],
)
def test_bounds(schema: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    for value in good:
        CONTRACT.check_value(value, schema, "value")
    for value in bad:
        with pytest.raises(ContractError):
            CONTRACT.check_value(value, schema, "value")


def test_an_unknown_keyword_is_an_error() -> None:
    with pytest.raises(ContractError, match="oneOf"):
        CONTRACT.check_value(1, {"oneOf": []}, "value")


def test_an_answer_must_be_one_that_is_promised() -> None:
    json_type = {"content-type": "application/json"}
    body = json.dumps(SANDBOX).encode()
    CONTRACT.check("createSandbox", 201, json_type, body)
    for status, headers, content in [
        (200, json_type, body),
        (201, {"content-type": "text/plain"}, body),
        (201, json_type, b"{}"),
    ]:
        with pytest.raises(ContractError):
            CONTRACT.check("createSandbox", status, headers, content)
    with pytest.raises(ContractError):
        CONTRACT.check("deleteSandbox", 204, {}, b"{}")


def test_every_operation_is_read() -> None:
    assert len(CONTRACT.operations) == CONTRACT_FILE.read_text().count("operationId:")
    assert not CONTRACT.operations["healthz"].needs_key
    assert CONTRACT.operations["createRun"].needs_key
    request = CONTRACT.operations["createRunInNewSandbox"].request
    assert request is not None
    assert {"code", "sandbox"} <= request["properties"].keys()


def test_an_operation_is_found_by_its_request() -> None:
    found = CONTRACT.find("POST", f"/v1/sandboxes/{ID}/runs")
    assert found is not None
    assert found.id == "createRun"
    assert CONTRACT.find("PATCH", f"/v1/sandboxes/{ID}/runs") is None
    assert CONTRACT.find("POST", f"/v1/sandboxes/{ID}/runs/") is None


def test_errors_from_before_an_operation_need_their_form() -> None:
    json_type = {"content-type": "application/json"}
    good = {"error": {"code": "too_large", "message": "send less", "request_id": "x"}}
    CONTRACT.check("healthz", 413, json_type, json.dumps(good).encode())
    with pytest.raises(ContractError):
        CONTRACT.check("healthz", 413, json_type, b'{"error": "too large"}')
    with pytest.raises(ContractError):
        CONTRACT.check("healthz", 500, json_type, json.dumps(good).encode())
