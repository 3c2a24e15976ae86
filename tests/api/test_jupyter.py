"""Any Jupyter kernel that is installed in a sandbox, as the language `jupyter:NAME`, and the template that it needs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from conftest import Cli, Run, create_sandbox, result_text, runner

HOME = "/home/user"
SPECS = f"{HOME}/.local/share/jupyter/kernels"

# A kernel in fifty lines: `say TEXT`, `fail`, `ask`, `sleep`, `die`, and two that break the rules.
KERNEL = r'''
import hashlib, hmac, json, os, sys, time, uuid, zmq
at = json.load(open(sys.argv[1]))
def bound(kind, port):
    made = zmq.Context.instance().socket(kind)
    made.bind(f"tcp://{at['ip']}:{at[port]}")
    return made
shell, control = bound(zmq.ROUTER, "shell_port"), bound(zmq.ROUTER, "control_port")
stdin, iopub = bound(zmq.ROUTER, "stdin_port"), bound(zmq.PUB, "iopub_port")
def send(socket, idents, kind, content, parent):
    header = {"msg_id": uuid.uuid4().hex, "msg_type": kind, "session": "k", "username": "k", "version": "5.3"}
    parts = [json.dumps(part).encode() for part in (header, parent, {}, content)]
    sign = hmac.new(at["key"].encode(), b"".join(parts), hashlib.sha256).hexdigest().encode()
    socket.send_multipart([*idents, b"<IDS|MSG>", sign, *parts])
def receive(socket):
    frames = socket.recv_multipart()
    cut = frames.index(b"<IDS|MSG>")
    return frames[:cut], json.loads(frames[cut + 2]), json.loads(frames[cut + 5])
count = 0
while True:
    idents, header, content = receive(shell)
    told = lambda kind, content: send(iopub, [], kind, content, header)
    told("status", {"execution_state": "busy"})
    if header["msg_type"] == "kernel_info_request":
        send(shell, idents, "kernel_info_reply", {"language_info": {"name": "toy", "version": "1"}}, header)
    else:
        word, _, rest = content["code"].partition(" ")
        count += 1
        reply = {"status": "ok", "execution_count": count, "payload": []}
        try:
            if word == "say": told("stream", {"name": "stdout", "text": rest})
            elif word == "value": told("execute_result", {"data": {"text/plain": rest, "application/json": {"a": 1}}, "metadata": {}, "execution_count": count})
            elif word == "fail": reply = {"status": "error", "ename": "Bad", "evalue": rest, "traceback": ["\x1b[31mBad\x1b[0m: " + rest]}
            elif word == "sleep": time.sleep(60)
            elif word == "die": os._exit(7)
            elif word == "nonsense": iopub.send_multipart([b"x", b"<IDS|MSG>", b"forged", b"{}", b"{}", b"{}", b"{}"])
            elif word == "types": told("error", {"ename": 7, "evalue": None, "traceback": "x"})
            elif word == "ask":
                send(stdin, idents, "input_request", {"prompt": "? ", "password": False}, header)
                told("stream", {"name": "stdout", "text": receive(stdin)[2]["value"]})
        except KeyboardInterrupt:
            reply = {"status": "error", "ename": "KeyboardInterrupt", "evalue": "", "traceback": []}
        send(shell, idents, "execute_reply", reply, header)
    told("status", {"execution_state": "idle"})
'''


def put(client: httpx.Client, sandbox: dict[str, Any], path: str, text: str) -> None:
    answer = client.put(f"/v1/sandboxes/{sandbox['id']}/files", params={"path": path}, content=text.encode())
    assert answer.status_code in (200, 201, 204), answer.text


def install(client: httpx.Client, sandbox: dict[str, Any], name: str, **spec: Any) -> None:
    put(client, sandbox, f"{SPECS}/{name}/kernel.json", json.dumps({"display_name": name, "language": "toy", **spec}))


@pytest.fixture(scope="module")
def polyglot(client: httpx.Client) -> Iterator[dict[str, Any]]:
    made = create_sandbox(client, template="polyglot")
    put(client, made, f"{HOME}/toy.py", KERNEL)
    install(client, made, "toy", argv=["/usr/bin/python3", f"{HOME}/toy.py", "{connection_file}"])
    yield made
    assert client.delete(f"/v1/sandboxes/{made['id']}").status_code == 204


@pytest.fixture
def toy(client: httpx.Client, polyglot: dict[str, Any]) -> Run:
    return runner(client, polyglot, language="jupyter:toy")


@pytest.mark.polyglot
def test_output_results_and_errors(toy: Run) -> None:
    assert toy("say hello")["stdout"]["text"] == "hello"
    done = toy("value 5")
    assert result_text(done) == "5"
    assert done["results"][0]["data"]["application/json"] == {"a": 1}
    failed = toy("fail no")
    assert (failed["end_reason"], failed["exit_code"]) == ("error", 1)
    assert failed["error"] | {"name": "Bad", "value": "no", "traceback": ["Bad: no"]} == failed["error"]


@pytest.mark.polyglot
def test_interrupts_and_deaths(toy: Run) -> None:
    done = toy("sleep", timeout_ms=1000)
    assert (done["end_reason"], done["state_lost"]) == ("timeout", False)
    died = toy("die")
    assert (died["end_reason"], died["exit_code"], died["state_lost"]) == ("kernel_died", 7, True)
    assert toy("say again")["stdout"]["text"] == "again"


@pytest.mark.polyglot
def test_input(toy: Run) -> None:
    assert toy("ask", stdin="me\n")["stdout"]["text"] == "? me"
    assert "this run has no stdin" in toy("ask")["error"]["value"]
    assert toy("ask", stdin="you\n")["stdout"]["text"] == "? you"


@pytest.mark.polyglot
def test_what_breaks_the_rules_is_left_out_or_cut(toy: Run) -> None:
    assert toy("nonsense")["end_reason"] == "ok"
    assert toy("types")["error"]["name"] == "Error"
    assert toy("say well")["stdout"]["text"] == "well"


@pytest.mark.polyglot
def test_what_it_cannot_do_is_said(toy: Run) -> None:
    assert "`env` of a run cannot be set" in toy("say x", env={"A": "1"})["error"]["value"]


@pytest.mark.polyglot
def test_kernels_that_cannot_be_run(client: httpx.Client, polyglot: dict[str, Any]) -> None:
    install(client, polyglot, "gone", argv=["/no/such/program"])
    install(client, polyglot, "broken", argv="not a list")
    install(client, polyglot, "quits", argv=["/bin/sh", "-c", "echo because >&2; exit 3"])
    reasons = {"nothing": "there is ", "gone": "/no/such/program", "broken": "must be a list of words", "quits": "because"}
    for name, reason in reasons.items():
        done = runner(client, polyglot, language=f"jupyter:{name}")("x")
        said = json.dumps(done)
        assert done["end_reason"] == "kernel_died", said
        assert reason in said, said


@pytest.mark.polyglot
def test_the_kernel_of_r_is_one_of_them(client: httpx.Client, polyglot: dict[str, Any]) -> None:
    assert result_text(runner(client, polyglot, language="jupyter:ir")("1 + 1")) == "[1] 2"


@pytest.mark.polyglot
def test_the_template_has_what_the_base_has(client: httpx.Client, polyglot: dict[str, Any]) -> None:
    assert polyglot["template"] == "polyglot"
    assert result_text(runner(client, polyglot)("import pandas; 6 * 7")) == "42"
    assert result_text(runner(client, polyglot, language="typescript")("const x: number = 1; x")) == "1"


@pytest.mark.polyglot
def test_the_command_line_takes_the_template_of_the_language(cli: Cli) -> None:
    done = cli("run", "--quiet", "--language", "r", "-c", "cat(6 * 7)")
    assert (done.returncode, done.stdout) == (0, "42"), done.stderr


def test_base_says_where_a_language_is(client: httpx.Client, sandbox: dict[str, Any]) -> None:
    path = f"/v1/sandboxes/{sandbox['id']}"
    for language in ("r", "java"):
        for where, body in ((f"{path}/runs", {"code": "1"}), (f"{path}/contexts", {}), ("/v1/runs", {"code": "1"})):
            answer = client.post(where, json={"language": language, **body})
            assert answer.status_code == 422, answer.text
            error = answer.json()["error"]
            assert error["field"] == "language"
            assert "make the sandbox with the template `polyglot`" in error["message"]


def test_unknown_templates_and_languages(client: httpx.Client, sandbox: dict[str, Any]) -> None:
    error = client.post("/v1/sandboxes", json={"template": "none"}).json()["error"]
    assert (error["field"], "`base`, `polyglot`" in error["message"]) == ("template", True)
    for language in ("jupyter:", "jupyter:a/b", "jupyter:" + "x" * 100, "cobol"):
        answer = client.post(f"/v1/sandboxes/{sandbox['id']}/runs", json={"code": "1", "language": language})
        assert answer.status_code in (400, 422), answer.text


def test_base_says_what_the_bridge_needs(client: httpx.Client, sandbox: dict[str, Any]) -> None:
    done = runner(client, sandbox, language="jupyter:toy")("x")
    assert done["end_reason"] == "kernel_died"
    assert "use the template `polyglot`" in json.dumps(done)
