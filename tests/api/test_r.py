"""The R interpreter of a context, in the template polyglot: IRkernel, through the bridge to Jupyter kernels."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from conftest import Run, create_sandbox, result_text, runner, stream

pytestmark = pytest.mark.polyglot


@pytest.fixture(scope="module")
def polyglot(client: httpx.Client) -> Iterator[dict[str, Any]]:
    made = create_sandbox(client, template="polyglot")
    yield made
    assert client.delete(f"/v1/sandboxes/{made['id']}").status_code == 204


@pytest.fixture
def r(client: httpx.Client, polyglot: dict[str, Any]) -> Run:
    return runner(client, polyglot, language="r")


RESULTS = {
    "6 * 7": "[1] 42",
    "'ü'": '[1] "ü"',
    "matrix(1:4, 2)[2, ]": "[1] 2 4",
    "x <- 1:3\nsum(x)": "[1] 6",
    "NULL": "NULL",
}


@pytest.mark.parametrize("code", RESULTS)
def test_results(code: str, r: Run) -> None:
    assert result_text(r(code)) == RESULTS[code]


@pytest.mark.parametrize("code", ["y <- 1", "# nothing", "", "invisible(7)", "cat('')"])
def test_no_result(code: str, r: Run) -> None:
    done = r(code)
    assert (done["end_reason"], done["results"]) == ("ok", [])


def test_state_stays_from_run_to_run(r: Run) -> None:
    r("kept <- 20; double <- function(x) 2 * x")
    assert result_text(r("double(kept) + 1")) == "[1] 41"


def test_a_table_is_shown_as_one(r: Run) -> None:
    (shown,) = r("data.frame(a = 1:2, b = c('x', 'y'))")["results"]
    assert "<table" in shown["data"]["text/html"]
    assert shown["data"]["text/plain"].splitlines()[1:] == ["1 1 x", "2 2 y"]


def test_a_plot_is_a_picture_once(r: Run) -> None:
    done = r("plot(1:3, main = 'Größe')\ninvisible(3)")
    (shown,) = done["results"]
    assert base64.b64decode(shown["data"]["image/png"]).startswith(b"\x89PNG")
    two = r("plot(1:3); hist(c(1, 2, 2))")["results"]
    assert len({shown["data"]["image/png"] for shown in two}) == 2


def test_what_is_printed_comes_as_it_is_written(client: httpx.Client, polyglot: dict[str, Any], r: Run) -> None:
    done = r("cat('out\\n'); message('err'); print(1); system('echo child')")
    assert done["stdout"]["text"] == "out\n[1] 1\nchild\n"
    assert done["stderr"]["text"].strip() == "err"
    code = "cat('first\\n'); flush.console(); Sys.sleep(1.5); cat('second\\n')"
    events = stream(client, f"/v1/sandboxes/{polyglot['id']}/runs", {"code": code, "language": "r"})
    assert [e.data["text"] for e in events if e.type == "stdout"] == ["first\n", "second\n"]


def test_errors_and_warnings(r: Run) -> None:
    done = r("f <- function(a) stop('bad ', a)\nf(1)")
    assert (done["end_reason"], done["exit_code"], done["state_lost"]) == ("error", 1, False)
    assert done["error"]["value"].strip() == "Error in f(1): bad 1"
    syntax = r("y <- ")["error"]
    assert "unexpected end of input" in syntax["value"]
    warned = r("warning('careful')")
    assert warned["end_reason"] == "ok"
    assert "careful" in warned["stderr"]["text"]


@pytest.mark.parametrize("code", ["while (TRUE) {}", "Sys.sleep(60)"])
def test_a_timeout_keeps_the_state_and_what_was_printed(code: str, r: Run) -> None:
    r("kept <- 7")
    done = r(f"cat('before\\n'); {code}", timeout_ms=1500)
    assert (done["end_reason"], done["state_lost"], done["stdout"]["text"]) == ("timeout", False, "before\n")
    assert done["metrics"]["wall_ms"] < 2500
    assert result_text(r("kept")) == "[1] 7"


@pytest.mark.parametrize(("code", "exit_code"), [("quit(status = 3)", 3), ("q()", 0), ("(function() q('no', 4))(); cat('not this')", 4)])
def test_quit_ends_the_run_only(code: str, exit_code: int, r: Run) -> None:
    r("kept <- 8")
    done = r(code)
    assert (done["exit_code"], done["state_lost"], done["stdout"]["text"]) == (exit_code, False, "")
    assert done["end_reason"] == ("ok" if exit_code == 0 else "error")
    assert result_text(r("kept")) == "[1] 8"


def test_what_ends_the_interpreter_says_so(r: Run) -> None:
    done = r("tools::pskill(Sys.getpid(), 9); Sys.sleep(9)")
    assert (done["end_reason"], done["exit_code"], done["state_lost"]) == ("kernel_died", 137, True)
    assert result_text(r("1 + 1")) == "[1] 2"


def test_env_cwd_and_argv_are_data_and_for_one_run(r: Run) -> None:
    value = 'it\'s "${HOME}" \\ ü'
    code = "cat(Sys.getenv('A'), getwd(), commandArgs(TRUE), sep = '|')"
    done = r(code, env={"A": value}, cwd="/tmp", argv=["x.R", "one", "'two'"])
    assert done["stdout"]["text"] == f"{value}|/tmp|one|'two'"
    assert r("cat(Sys.getenv('A'), getwd(), sep = '|')", cwd="/home/user")["stdout"]["text"] == "|/home/user"


def test_stdin(r: Run) -> None:
    done = r("readline('name? ')")
    assert (done["end_reason"], done["state_lost"]) == ("error", False)
    assert "this run has no stdin" in done["error"]["value"]
    done = r("a <- readline('name? '); b <- readline(); cat(a, b)", stdin="Ada\nBob\n")
    assert done["stdout"]["text"] == "name? Ada Bob"


def test_contexts_are_apart(client: httpx.Client, polyglot: dict[str, Any], r: Run) -> None:
    contexts = f"/v1/sandboxes/{polyglot['id']}/contexts"
    made = client.post(contexts, json={"language": "r", "cwd": "/tmp", "env": {"B": "2"}}).json()
    other = runner(client, polyglot, context_id=made["id"])
    r("apart <- 1")
    assert other("cat(exists('apart'), getwd(), Sys.getenv('B'))")["stdout"]["text"] == "FALSE /tmp 2"
    other("mine <- 1")
    assert client.post(f"{contexts}/{made['id']}/restart").status_code == 200
    assert other("cat(exists('mine'))")["stdout"]["text"] == "FALSE"
    assert client.delete(f"{contexts}/{made['id']}").status_code == 204
