"""`cloister context`, and `cloister run --context`."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import Cli
from service import Service


@pytest.fixture
def context(cli: Cli, sandbox: dict[str, Any]) -> str:
    made = cli("context", "create", sandbox["id"], "--cwd", "/tmp", "--env", "A=it's=1")
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def test_a_context_keeps_variables_between_calls(cli: Cli, sandbox: dict[str, Any], context: str) -> None:
    assert context.startswith(f"{sandbox['id']}/")
    assert cli("run", "--context", context, "-c", "import os; kept = os.getcwd() + os.environ['A']").returncode == 0
    done = cli("run", "--quiet", "--context", context, "-c", "print(kept)")
    assert done.stdout == "/tmpit's=1\n"
    elsewhere = cli("run", "--quiet", "-c", "print('kept' in globals())")
    assert elsewhere.stdout == "False\n"


def test_list_get_restart_delete(cli: Cli, sandbox: dict[str, Any], context: str) -> None:
    listed = cli("context", "list", sandbox["id"])
    (line,) = listed.stdout.splitlines()
    assert line.split() == [context, "python", "idle", "0", "queued", "/tmp"]
    shown = dict(line.split(maxsplit=1) for line in cli("context", "get", context).stdout.splitlines())
    assert (shown["language"], shown["state"], shown["cwd"]) == ("python", "idle", "/tmp")
    cli("run", "--context", context, "-c", "kept = 1")
    again = cli("context", "restart", context)
    assert (again.returncode, again.stdout.strip()) == (0, context)
    assert cli("run", "--quiet", "--context", context, "-c", "print('kept' in globals())").stdout == "False\n"
    assert cli("context", "delete", context).returncode == 0
    gone = cli("context", "get", context)
    assert (gone.returncode, gone.stdout) == (66, "")
    assert cli("run", "--context", context, "-c", "1").returncode == 66


def test_json_is_the_answer_of_the_service(cli: Cli, client: httpx.Client, sandbox: dict[str, Any]) -> None:
    made = json.loads(cli("context", "create", sandbox["id"], "--language", "bash", "--json").stdout)
    assert (made["language"], made["default"]) == ("bash", False)
    name = f"{sandbox['id']}/{made['id']}"
    path = f"/v1/sandboxes/{sandbox['id']}/contexts"
    assert json.loads(cli("context", "get", name, "--json").stdout) == client.get(f"{path}/{made['id']}").json()
    assert json.loads(cli("context", "list", sandbox["id"], "--json").stdout) == client.get(path).json()
    assert json.loads(cli("context", "restart", name, "--json").stdout)["id"] == made["id"]


def test_without_a_sandbox_one_is_made_and_stays(cli: Cli, client: httpx.Client) -> None:
    name = cli("context", "create").stdout.strip()
    sandbox = name.partition("/")[0]
    try:
        cli("run", "--context", name, "-c", "open('made', 'w').write('x')")
        assert client.get(f"/v1/sandboxes/{sandbox}").json()["state"] == "running"
        assert cli("run", "--quiet", "--context", name, "-c", "print(open('made').read())").stdout == "x\n"
    finally:
        client.delete(f"/v1/sandboxes/{sandbox}")


def test_files_go_there_and_come_back(cli: Cli, context: str, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("here")
    (tmp_path / "make.py").write_text("import pathlib; pathlib.Path('/home/user/out.txt').write_text(pathlib.Path('/home/user/in.txt').read_text() * 2)")
    done = cli("run", "--context", context, "--file", "in.txt", "make.py")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("context",),
        ("context", "make"),
        ("context", "get", "abc"),
        ("context", "delete", "abc/def"),
        ("context", "list", "nothing"),
        ("context", "create", "--language", "cobol"),
        ("context", "create", "--env", "novalue"),
        ("run", "--context", "abc", "-c", "1"),
        ("run", "--context", "a" * 20 + "/" + "b" * 20, "--memory", "1G", "-c", "1"),
        ("run", "--context", "a" * 20 + "/" + "b" * 20, "--language", "bash", "-c", "1"),
    ],
    ids=" ".join,
)
def test_wrong_usage(words: tuple[str, ...], cli: Cli) -> None:
    done = cli(*words)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr


def test_an_interrupt_leaves_the_sandbox_and_its_variables(cli: Cli, server: Service, client: httpx.Client, sandbox: dict[str, Any], context: str) -> None:
    cli("run", "--context", context, "-c", "kept = 5")
    code = "import time\nprint('in', flush=True)\ntry: time.sleep(60)\nexcept KeyboardInterrupt: time.sleep(60)"
    command = [server.build.program("cloister"), "run", "--context", context, "-c", code]
    running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=server.environment())
    assert running.stdout is not None
    assert running.stdout.readline() == b"in\n"
    running.send_signal(signal.SIGTERM)
    begin = time.monotonic()
    assert running.wait(10) in (-signal.SIGTERM, 143)
    assert time.monotonic() - begin < 5
    assert client.get(f"/v1/sandboxes/{sandbox['id']}").json()["state"] == "running"
    other = cli("run", "--quiet", "--context", context, "-c", "print(2)")
    assert other.stdout == "2\n"
