"""The Java interpreter of a context, in the template polyglot: JShell, behind our own driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from conftest import Events, Run, create_sandbox, result_text, runner, stream

pytestmark = pytest.mark.polyglot


@pytest.fixture(scope="module")
def polyglot(client: httpx.Client) -> Iterator[dict[str, Any]]:
    made = create_sandbox(client, template="polyglot")
    yield made
    assert client.delete(f"/v1/sandboxes/{made['id']}").status_code == 204


@pytest.fixture
def java(client: httpx.Client, polyglot: dict[str, Any]) -> Run:
    return runner(client, polyglot, language="java")


RESULTS = {
    "6 * 7": "42",
    "6 * 7;": "42",
    '"text"': '"text"',
    "new int[] {1, 2}": "int[2] { 1, 2 }",
    "List.of(1, 2, 3).stream().map(i -> i * 2).toList()": "[2, 4, 6]",
    'record Point(int x, String name) {}\nnew Point(1, "ü")': "Point[x=1, name=ü]",
    "var all = new ArrayList<Integer>();\nfor (int i : List.of(1, 2)) all.add(i);\nall  // at the end": "[1, 2]",
    "class Before { Behind b = new Behind(); }\nclass Behind { int v = 5; }\nnew Before().b.v": "5",
}


@pytest.mark.parametrize("code", RESULTS)
def test_results(code: str, java: Run) -> None:
    assert result_text(java(code)) == RESULTS[code]


@pytest.mark.parametrize("code", ["int y = 1;", "// nothing", "", "null", "y = 2", "System.out.flush();", "import java.time.*;"])
def test_no_result(code: str, java: Run) -> None:
    java("int y = 1;")
    done = java(code)
    assert (done["end_reason"], done["results"], done.get("error")) == ("ok", [], None)


def test_state_stays_from_run_to_run(java: Run) -> None:
    java("int kept = 1; int twice(int n) { return 2 * n; } class Kept { int v = 3; }")
    assert result_text(java("twice(kept) + new Kept().v")) == "5"
    java('String kept = "anew"; int twice(int n) { return 4 * n; }')
    assert result_text(java("kept + twice(2)")) == '"anew8"'


def test_what_is_printed_comes_as_it_is_written_and_in_order(client: httpx.Client, polyglot: dict[str, Any]) -> None:
    code = 'for (int i = 0; i < 3; i++) { System.out.println("o" + i); System.err.println("e" + i); html("<b>" + i + "</b>"); }'
    events = stream(client, f"/v1/sandboxes/{polyglot['id']}/runs", {"code": code, "language": "java"})
    seen = [e.data.get("text", "<>").strip() for e in events if e.type in ("stdout", "stderr", "display")]
    assert seen == ["o0", "e0", "<>", "o1", "e1", "<>", "o2", "e2", "<>"]
    code = 'System.out.print("first"); Thread.sleep(1500); System.out.print("second");'
    events = stream(client, f"/v1/sandboxes/{polyglot['id']}/runs", {"code": code, "language": "java"})
    assert [e.data["text"] for e in events if e.type == "stdout"] == ["first", "second"]


def test_displays(java: Run) -> None:
    done = java('html("<i>x</i>"); display(new java.awt.image.BufferedImage(4, 4, 1)); json(Map.of("a", List.of(1, 2)));')
    assert done["end_reason"] == "ok", done.get("error")
    html, png, json = (shown["data"] for shown in done["results"])
    assert html["text/html"] == "<i>x</i>"
    assert png["image/png"].startswith("iVBORw0KGgo")
    assert json["application/json"] == {"a": [1, 2]}


def test_an_exception_has_the_lines_of_the_cell(java: Run) -> None:
    done = java("int divide(int a, int b) {\n    return a / b;\n}\n\ndivide(1, 0)")
    assert (done["end_reason"], done["exit_code"], done["state_lost"]) == ("error", 1, False)
    error = done["error"]
    assert (error["name"], error["value"]) == ("java.lang.ArithmeticException", "/ by zero")
    first, *frames = error["traceback"]
    assert first == "java.lang.ArithmeticException: / by zero"
    assert [frame.strip().split(":")[1].rstrip(")") for frame in frames] == ["2", "5"]


def test_causes_are_told(java: Run) -> None:
    error = java('throw new IllegalStateException("outer", new RuntimeException("inner"));')["error"]
    assert error["value"] == "outer"
    assert "Caused by: java.lang.RuntimeException: inner" in error["traceback"]


def test_code_that_does_not_compile(java: Run) -> None:
    done = java("int good = 1;\nint bad = ;\n")
    assert (done["end_reason"], done["error"]["name"]) == ("error", "CompilationError")
    where, line, caret = done["error"]["traceback"]
    assert where.endswith(":2: error: illegal start of expression")
    assert (line, caret) == ("int bad = ;", "          ^")
    missing = java("Missing m = null;")
    assert "Missing" in "\n".join(missing["error"]["traceback"])


@pytest.mark.parametrize("code", ["while (true) ;", "Thread.sleep(60_000);", "long n = 0; for (;;) n++;"])
def test_a_timeout_keeps_the_state_and_what_was_printed(code: str, java: Run) -> None:
    java("int kept = 7;")
    done = java(f'System.out.println("before"); {code}', timeout_ms=1500)
    assert (done["end_reason"], done["state_lost"], done["stdout"]["text"]) == ("timeout", False, "before\n")
    assert done["metrics"]["wall_ms"] < 2500
    assert result_text(java("kept")) == "7"


@pytest.mark.parametrize(("code", "exit_code"), [("System.exit(3);", 3), ("System.exit(0); System.out.println(1);", 0), ("try { System.exit(4); } catch (Throwable t) { }", 4)])
def test_exit_ends_the_run_only(code: str, exit_code: int, java: Run) -> None:
    java("int kept = 8;")
    done = java(code)
    assert (done["exit_code"], done["state_lost"], done["stdout"]["text"]) == (exit_code, False, "")
    assert done["end_reason"] == ("ok" if exit_code == 0 else "error")
    assert result_text(java("kept")) == "8"


def test_what_ends_the_interpreter_says_so(java: Run) -> None:
    java("int kept = 9;")
    done = java("Runtime.getRuntime().exec(new String[] {\"kill\", \"-9\", \"\" + ProcessHandle.current().pid()}).waitFor(); Thread.sleep(9000);")
    assert (done["end_reason"], done["exit_code"], done["state_lost"]) == ("kernel_died", 137, True)
    assert java("kept")["error"]["name"] == "CompilationError"


def test_env_is_data_and_for_one_run(java: Run) -> None:
    value = 'it\'s "${HOME}" \\ ü'
    assert java('System.out.print(System.getenv("A") + System.getProperty("A"));', env={"A": value})["stdout"]["text"] == 2 * value
    assert java('System.out.print(System.getenv("A") + System.getProperty("A"));')["stdout"]["text"] == "nullnull"


def test_stdin(java: Run) -> None:
    done = java("new Scanner(System.in).nextLine()")
    assert "this run has no stdin" in done["error"]["value"]
    assert result_text(java("var in = new Scanner(System.in); in.nextLine() + in.nextLine()", stdin="Ada\nBob\n")) == '"AdaBob"'


def test_a_file_with_main_is_a_program(java: Run) -> None:
    code = 'import java.util.*;\npublic class Hello {\n  public static void main(String[] args) {\n    System.out.println(String.join("-", args));\n    if (args.length > 1) throw new IllegalStateException("no");\n  }\n}\n'
    assert java(code, filename="Hello.java", argv=["Hello.java", "one"])["stdout"]["text"] == "one\n"
    done = java(code, filename="Hello.java", argv=["Hello.java", "one", "two"])
    assert done["stdout"]["text"] == "one-two\n"
    assert done["error"]["traceback"][1].strip() == "at Hello.main (Hello.java:5)"


def test_cwd_is_that_of_the_context(client: httpx.Client, polyglot: dict[str, Any], java: Run) -> None:
    assert "make a context with it" in java("1", cwd="/tmp")["error"]["value"]
    contexts = f"/v1/sandboxes/{polyglot['id']}/contexts"
    made = client.post(contexts, json={"language": "java", "cwd": "/tmp", "env": {"B": "2"}}).json()
    here = runner(client, polyglot, context_id=made["id"])
    done = here('System.out.print(new File("x").getAbsolutePath() + System.getenv("B"));')
    assert done["stdout"]["text"] == "/tmp/x2"
    here("int only = 1;")
    assert client.post(f"{contexts}/{made['id']}/restart").status_code == 200
    assert here("only")["error"]["name"] == "CompilationError"
    assert client.delete(f"{contexts}/{made['id']}").status_code == 204


def test_its_heap_fits_into_the_sandbox(java: Run) -> None:
    """An array too many is an error of the program, not the end of the sandbox."""
    done = java("var kept = new ArrayList<byte[]>(); while (true) kept.add(new byte[64 << 20]);")
    assert (done["error"]["name"], done["state_lost"]) == ("java.lang.OutOfMemoryError", False)


def test_threads_go_on_between_runs(java: Run) -> None:
    java("var late = new java.util.concurrent.CompletableFuture<Integer>(); new Thread(() -> { try { Thread.sleep(300); } catch (InterruptedException e) { } late.complete(5); }).start();")
    assert result_text(java("late.get()")) == "5"
