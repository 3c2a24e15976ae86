"""The Python interpreter of a context, seen through runs: what code may expect of it."""

from __future__ import annotations

import base64
import time
from typing import Any

import httpx
import pytest
from conftest import Events, Run, create_sandbox

PNG = b"\x89PNG\r\n\x1a\n"


def out(run: dict[str, Any]) -> str:
    assert run["end_reason"] == "ok", (run.get("error"), run["message"], run["stderr"])
    return run["stdout"]["text"]


def mimes(run: dict[str, Any]) -> list[tuple[str, set[str]]]:
    """Type and MIME types of each result, in order."""
    return [(result["type"], set(result["data"])) for result in run["results"]]


def pictures(run: dict[str, Any]) -> int:
    return sum("image/png" in result["data"] for result in run["results"])


def text_result(run: dict[str, Any]) -> str:
    (result,) = run["results"]
    return result["data"]["text/plain"]


# --- Output ---


def test_streams_keep_their_order(events: Events) -> None:
    seen = events("import sys\nfor i in range(30):\n    print('o', i)\n    print('e', i, file=sys.stderr)")
    written = [(event.type, event.data["text"]) for event in seen if event.type in ("stdout", "stderr")]
    assert written == [pair for i in range(30) for pair in (("stdout", f"o {i}\n"), ("stderr", f"e {i}\n"))]


def test_bytes_keep_their_order_among_text(events: Events) -> None:
    """What is written to sys.stdout.buffer is shown at once, and stands where it was written."""
    code = (
        "import sys, time\n"
        "sys.stdout.write('a'); sys.stdout.buffer.write(b'b'); sys.stdout.write('c'); sys.stdout.buffer.write(b'd\\n'); print('e')\n"
        "sys.stderr.buffer.write(b'error\\n'); sys.stdout.buffer.write(b'f'); print('g', file=sys.stderr); print('h')\n"
        "time.sleep(0.1); sys.stdout.buffer.write(b'live'); time.sleep(1.2); sys.stdout.buffer.write(b'later')"
    )
    joined: list[tuple[str, str]] = []
    written = [(event.type, event.data["text"]) for event in events(code) if event.type in ("stdout", "stderr")]
    for kind, text in written:
        before = joined.pop()[1] if joined and joined[-1][0] == kind else ""
        joined.append((kind, before + text))
    assert joined == [("stdout", "abcd\ne\n"), ("stderr", "error\n"), ("stdout", "f"), ("stderr", "g\n"), ("stdout", "h\nlivelater")]
    assert written[-1] == ("stdout", "later"), "what stood before was shown before the pause"


def test_bytes_may_be_wrapped_and_closed(run: Run) -> None:
    code = "import io, sys\nwrapped = io.TextIOWrapper(sys.stdout.buffer, encoding='latin-1')\nwrapped.write('ü'); wrapped.close()"
    run(code)
    assert out(run("print('still here'); sys.stdout.buffer.fileno()")) == "still here\n"


def test_displays_keep_their_place_among_output(events: Events) -> None:
    seen = events("for i in range(10):\n    print(i)\n    display(i)\nprint('end')")
    types = [event.type for event in seen]
    assert types == ["started", *["stdout", "display"] * 10, "stdout", "ended"]


def test_output_of_c_code_and_of_children(run: Run) -> None:
    done = run(
        "import ctypes, os, subprocess\n"
        "print('python')\n"
        "ctypes.CDLL(None).printf(b'c code\\n')\n"
        "os.write(1, b'fd 1\\n')\n"
        "subprocess.run(['echo', 'child'])\n"
        "os.system('echo shell')\n"
        "print('again')"
    )
    assert out(done) == "python\nc code\nfd 1\nchild\nshell\nagain\n"


def test_c_output_without_a_line_end_is_not_lost(run: Run) -> None:
    assert out(run("import ctypes; ctypes.CDLL(None).printf(b'half')\nprint('way')")).count("half") == 1


@pytest.mark.complaint(10)
def test_text_without_a_line_end_is_live(events: Events) -> None:
    seen = events("import sys, time\nprint('a', end='')\ntime.sleep(0.2)\nsys.stdout.write('b')\ntime.sleep(0.2)")
    assert [event.data["text"] for event in seen if event.type == "stdout"] == ["a", "b"]


def test_print_is_the_one_that_everybody_knows(run: Run) -> None:
    code = (
        "import io, sys\nprint()\nprint(1, None, 'x', sep='-', end='!\\n')\nprint('a', 'b', sep=None, end=None)\n"
        "other = io.StringIO()\nprint('elsewhere', file=other)\nprint(repr(other.getvalue()), flush=True)\n"
        "print('err', file=sys.stderr)"
    )
    done = run(code)
    assert (out(done), done["stderr"]["text"]) == ("\n1-None-x!\na b\n'elsewhere\\n'\n", "err\n")
    assert run("print('x', sep=3)")["error"]["name"] == "TypeError"
    assert run("print(nonsense=1)")["error"]["name"] == "TypeError"


def test_much_output_is_fast(run: Run) -> None:
    begin = time.monotonic()
    done = run("import sys\nfor _ in range(200): sys.stdout.write('x' * 1_000_000)")
    assert done["stdout"]["bytes"] == 200_000_000
    assert time.monotonic() - begin < 30


def test_lone_surrogates_do_not_break_the_stream(run: Run) -> None:
    done = run("print('a\\ud800b')\n'c\\udfff'")
    assert out(done) == "a\\ud800b\n"
    assert text_result(done) == "'c\\udfff'"


def test_output_of_a_forked_child_is_written_once(run: Run) -> None:
    code = "import os\nprint('before', end='')\nif os.fork() == 0:\n    print(' child')\n    os._exit(0)\nos.wait()"
    assert out(run(code)) == "before child\n"


def test_a_forked_child_that_falls_off_the_end_does_not_serve(run: Run) -> None:
    done = run("import os\nchild = os.fork()\nif child: print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))")
    assert out(done) == "0\n"
    assert out(run("print('one answer')")) == "one answer\n"


# --- Results and displays ---


def test_the_last_expression_is_the_result(run: Run) -> None:
    done = run("1\n2\n6 * 7")
    assert done["results"] == [{"type": "result", "data": {"text/plain": "42"}, "metadata": {}}]
    assert done["execution_count"] == 1


@pytest.mark.parametrize("code", ["x = 1", "None", "6 * 7;", "def f(): return 1", "", "# nothing"])
def test_no_result(code: str, run: Run) -> None:
    assert run(code)["results"] == []


def test_earlier_results_have_names(run: Run) -> None:
    run("'first'")
    run("'second'")
    assert text_result(run("(_, __, Out[1], In[1])")) == "('second', 'first', 'first', \"'first'\")"


DISPLAYS = {
    "HTML('<b>x</b>')": ("text/html", "<b>x</b>"),
    "Markdown('# x')": ("text/markdown", "# x"),
    "Latex('$x$')": ("text/latex", "$x$"),
    "JSON({'a': [1, None, float('nan')]})": ("application/json", {"a": [1, None, None]}),
    "SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>')": (
        "image/svg+xml",
        '<svg xmlns="http://www.w3.org/2000/svg"/>',
    ),
    "Javascript('1')": ("application/javascript", "1"),
}


@pytest.mark.parametrize("value", DISPLAYS)
def test_displays_by_mime_type(value: str, run: Run) -> None:
    done = run(f"from IPython.display import *\ndisplay({value})")
    mime, expected = DISPLAYS[value]
    (shown,) = done["results"]
    assert (shown["type"], shown["data"][mime]) == ("display", expected)


def test_images_are_base64(run: Run) -> None:
    (shown,) = run("from PIL import Image\nImage.new('RGB', (2, 2), 'red')")["results"]
    assert base64.b64decode(shown["data"]["image/png"]).startswith(PNG)


def test_a_data_frame_is_a_table(run: Run) -> None:
    done = run("import pandas as pd\npd.DataFrame({f'column_{i}': [i] for i in range(18)})")
    (shown,) = done["results"]
    assert shown["data"]["text/html"].count("<th>column_") == 18
    assert "column_0" in shown["data"]["text/plain"]


def test_sympy_is_latex(run: Run) -> None:
    (shown,) = run("import sympy\nsympy.Symbol('x') ** 2")["results"]
    assert "x^{2}" in shown["data"]["text/latex"]


def test_own_representations(run: Run) -> None:
    code = "class Box:\n    def _repr_html_(self): return '<i>box</i>'\nBox()"
    assert run(code)["results"][0]["data"]["text/html"] == "<i>box</i>"


def test_a_display_can_be_updated_and_cleared(events: Events) -> None:
    seen = events(
        "from IPython.display import clear_output, update_display\n"
        "_ = display('one', display_id='bar')\nupdate_display('two', display_id='bar')\nclear_output(wait=True)"
    )
    shown = [event for event in seen if event.type not in ("started", "ended")]
    assert [event.type for event in shown] == ["display", "display_update", "clear_output"]
    assert [event.data.get("display_id") for event in shown] == ["bar", "bar", None]
    assert shown[1].data["data"]["text/plain"] == "'two'"
    assert shown[2].data == {"wait": True}


def test_a_display_that_is_too_large_is_named_instead(run: Run) -> None:
    done = run("from IPython.display import HTML\ndisplay(HTML('x' * 9_000_000))\nprint('goes on')")
    assert out(done) == "goes on\n"
    assert "9,000" in done["results"][0]["data"]["text/plain"]
    assert "left out" in done["results"][0]["data"]["text/plain"]


def test_json_of_any_shape_is_taken(run: Run) -> None:
    code = (
        "deep = []\nfor _ in range(500): deep = [deep]\n"
        "loop = {}\nloop['self'] = loop\n"
        "display({'application/json': [deep, loop, 10**400, float('inf'), {1, 2}, {3: 'key'}]}, raw=True)\nprint('ok')"
    )
    done = run(code)
    assert out(done) == "ok\n"
    assert done["results"][0]["data"]["application/json"][5] == {"3": "key"}


# --- Charts ---


@pytest.mark.complaint(24)
@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("plt.plot([1, 2])", 1),
        ("plt.plot([1, 2]); plt.show()", 1),
        ("fig, ax = plt.subplots(); ax.plot([1, 2]); fig", 1),
        ("fig, ax = plt.subplots(); ax.plot([1, 2]); plt.show(); fig", 1),
        ("fig, ax = plt.subplots(); ax.plot([1, 2]); display(fig)", 1),
        ("plt.plot([1]); plt.show(); plt.plot([2]); plt.show()", 2),
        ("plt.figure(); plt.plot([1]); plt.figure(); plt.plot([2])", 2),
        ("plt.plot([1]); plt.close()", 0),
        ("plt.figure()", 0),
    ],
)
def test_each_chart_is_shown_once(code: str, count: int, run: Run) -> None:
    done = run(f"import matplotlib.pyplot as plt\n{code}\nNone")
    assert pictures(done) == count
    done = run(f"{code}")
    assert pictures(done) == count
    assert run("1")["results"] == [{"type": "result", "data": {"text/plain": "1"}, "metadata": {}}]


def test_a_chart_is_a_picture_with_content(run: Run) -> None:
    (shown,) = run("import pandas as pd\n_ = pd.Series([1, 3, 2]).plot(kind='bar')")["results"]
    picture = base64.b64decode(shown["data"]["image/png"])
    assert picture.startswith(PNG)
    assert len(picture) > 3000


def test_a_chart_before_an_error_is_shown(run: Run) -> None:
    done = run("import matplotlib.pyplot as plt\nplt.plot([1])\n1 / 0")
    assert (done["end_reason"], pictures(done)) == ("error", 1)


def test_charts_as_svg(run: Run) -> None:
    done = run(
        "%matplotlib inline\n%config InlineBackend.figure_format = 'svg'\n"
        "import matplotlib.pyplot as plt\nplt.plot([1])\nNone"
    )
    assert mimes(done) == [("display", {"text/plain", "image/svg+xml", "e2b/chart"})]


def test_a_chosen_backend_stays(run: Run) -> None:
    done = run(
        "import matplotlib\nmatplotlib.use('Agg')\n"
        "import matplotlib.pyplot as plt\nplt.plot([1])\nplt.savefig('a.png')"
    )
    assert pictures(done) == 0
    assert [artifact["path"] for artifact in done["artifacts"]] == ["/home/user/a.png"]


def test_charts_in_child_processes_work(run: Run) -> None:
    run("import matplotlib.pyplot as plt\nplt.plot([1])")
    code = "import matplotlib.pyplot as p; p.plot([1]); p.savefig('child.png')"
    done = run(f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {code!r}], check=True)")
    assert [artifact["path"] for artifact in done["artifacts"]] == ["/home/user/child.png"]


# --- Magics and shell ---


def test_shell_lines(run: Run) -> None:
    done = run("name = 'world'\n!echo hello {name}; echo oops >&2; exit 3\nprint(_exit_code)")
    assert (out(done), done["stderr"]["text"]) == ("hello world\n3\n", "oops\n")


def test_shell_output_as_a_value(run: Run) -> None:
    assert out(run("lines = !printf 'a\\nb\\n'\nprint(list(lines))")) == "['a', 'b']\n"


def test_shell_lines_are_live(events: Events) -> None:
    seen = events("!echo early; sleep 0.3; echo late")
    assert [event.data["text"] for event in seen if event.type == "stdout"] == ["early\n", "late\n"]


def test_bash_cells(run: Run) -> None:
    assert out(run("%%bash\nfor i in 1 2 3; do echo $i ü; done")) == "1 ü\n2 ü\n3 ü\n"
    failed = run("%%bash\necho before\nexit 4")
    assert (failed["end_reason"], failed["stdout"]["text"]) == ("error", "before\n")
    assert "exit status 4" in failed["error"]["value"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("%pwd", "'/home/user'"),
        ("%cd /tmp\n%pwd", "'/tmp'"),
        ("%env LANG", "'C.UTF-8'"),
    ],
)
def test_line_magics(code: str, expected: str, run: Run) -> None:
    done = run(code)
    assert done["results"][-1]["data"]["text/plain"] == expected


def test_more_magics(run: Run) -> None:
    assert "Wall time" in out(run("%%time\nsum(range(1000))"))
    assert "per loop" in out(run("%timeit -n 5 -r 1 sum(range(10))"))
    assert "pip" in out(run("%pip --version"))
    assert out(run("%%writefile note.txt\nhello")) == "Writing note.txt\n"
    assert out(run("%%capture seen\nprint('hidden')")) == ""
    assert out(run("print(seen.stdout, end='')")) == "hidden\n"


def test_a_wrong_magic_is_an_error(run: Run) -> None:
    done = run("%no_such_magic")
    assert (done["end_reason"], done["error"]["name"]) == ("error", "UsageError")
    assert "no_such_magic" in done["error"]["value"]


def test_help(run: Run) -> None:
    assert "Return the number of items" in str(run("len?")["results"][0]["data"])


# --- await ---


@pytest.mark.complaint(9)
def test_top_level_await(run: Run) -> None:
    assert text_result(run("import asyncio\nawait asyncio.sleep(0.01, result='woke')")) == "'woke'"


@pytest.mark.complaint(9)
def test_a_cell_without_await_begins_tasks(run: Run) -> None:
    """As in a notebook, where the loop always runs; asyncio.run() works, too, and a program is a program."""
    run("import asyncio\nasync def tick():\n    await asyncio.sleep(0.05)\n    return 'ticked'")
    assert out(run("task = asyncio.create_task(tick())\nprint(task.done())")) == "False\n"
    assert text_result(run("await task")) == "'ticked'"
    assert text_result(run("asyncio.run(tick())")) == "'ticked'"
    failed = run("import asyncio\nasync def tick(): pass\nasyncio.create_task(tick())", filename="program.py")
    assert failed["error"]["name"] == "RuntimeError"


def test_tasks_go_on_between_runs(run: Run) -> None:
    run("import asyncio\ntask = asyncio.create_task(asyncio.sleep(0.3, result='done'))\nawait asyncio.sleep(0)")
    time.sleep(1)
    assert text_result(run("(task.done(), task.result())")) == "(True, 'done')"


@pytest.mark.complaint(9)
def test_scripts_with_a_loop_of_their_own(run: Run) -> None:
    code = "import asyncio\nasync def main(): return 'ran'\nprint(asyncio.run(main()))"
    assert out(run(code)) == "ran\n"
    assert text_result(run("await main()")) == "'ran'"
    assert out(run(code)) == "ran\n"


def test_await_can_be_interrupted(run: Run) -> None:
    run("import asyncio")
    done = run("await asyncio.sleep(60)", timeout_ms=500)
    assert (done["end_reason"], done["state_lost"]) == ("timeout", False)
    assert done["error"]["name"] == "KeyboardInterrupt"


# --- Errors ---


def test_an_error_has_name_value_line_and_traceback(run: Run) -> None:
    done = run("def inner(x):\n    return 1 / x\n\ninner(0)")
    error = done["error"]
    assert (done["end_reason"], done["exit_code"]) == ("error", 1)
    assert (error["name"], error["value"], error["line"]) == ("ZeroDivisionError", "division by zero", 2)
    assert error["traceback"][0] == "Traceback (most recent call last):"
    assert '  File "<cell 1>", line 4, in <module>' in error["traceback"]
    assert error["traceback"][-1] == "ZeroDivisionError: division by zero"
    assert done["stderr"]["bytes"] == 0


def test_tracebacks_have_no_colours_and_no_frames_of_ours(run: Run) -> None:
    for code in ("raise ValueError('x')", "%%bash\nexit 1", "input()", "import json; json.loads('{')"):
        text = "\n".join(run(code)["error"]["traceback"])
        assert "\x1b" not in text
        assert "cloister" not in text.replace("cloister run", "")
        assert "IPython" not in text


def test_a_traceback_names_the_file(run: Run) -> None:
    done = run("x = 1\nraise KeyError('k')", filename="script.py")
    assert '  File "script.py", line 2, in <module>' in done["error"]["traceback"]
    assert "    raise KeyError('k')" in done["error"]["traceback"]
    assert done["error"]["line"] == 2


@pytest.mark.parametrize(
    ("code", "name", "line"),
    [
        ("x = 1\ny = (", "SyntaxError", 2),
        ("if True:\nx = 1", "IndentationError", 2),
        ("a = 1\nreturn 5", "SyntaxError", 2),
        ("print('a'\nprint('b')", "SyntaxError", 1),
    ],
)
def test_syntax_errors_have_their_line(code: str, name: str, line: int, run: Run) -> None:
    error = run(code)["error"]
    assert (error["name"], error["line"]) == (name, line)
    assert '  File "<cell 1>"' in error["traceback"][0]


def test_causes_and_groups_are_shown(run: Run) -> None:
    caused = run("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise RuntimeError('wrapped') from e")["error"]
    assert "ZeroDivisionError: division by zero" in caused["traceback"]
    assert caused["name"] == "RuntimeError"
    group = run("raise ExceptionGroup('two', [ValueError('first'), TypeError('second')])")["error"]
    assert any("ValueError: first" in line for line in group["traceback"])


def test_endless_recursion_is_short(run: Run) -> None:
    error = run("def again(): return again()\nagain()")["error"]
    assert error["name"] == "RecursionError"
    assert len(error["traceback"]) < 40


def test_a_huge_message_is_cut(run: Run) -> None:
    error = run("raise ValueError('x' * 5_000_000)")["error"]
    assert len(error["value"]) < 70_000
    assert error["value"].endswith("more characters)")


def test_an_exception_that_cannot_be_printed(run: Run) -> None:
    done = run("class Bad(Exception):\n    def __str__(self): raise RuntimeError\nraise Bad")
    assert done["error"]["name"] == "Bad"


def test_warnings_go_to_stderr(run: Run) -> None:
    done = run("import warnings\nwarnings.warn('careful')")
    assert "UserWarning: careful" in done["stderr"]["text"]
    assert done["end_reason"] == "ok"


# --- Ends ---


@pytest.mark.parametrize(
    ("code", "exit_code", "stderr"),
    [
        ("raise SystemExit", 0, ""),
        ("import sys; sys.exit(0)", 0, ""),
        ("import sys; sys.exit(3)", 3, ""),
        ("import sys; sys.exit('told you')", 1, "told you\n"),
        ("exit(7)", 7, ""),
        ("quit", 0, ""),
    ],
)
def test_exit_codes(code: str, exit_code: int, stderr: str, run: Run) -> None:
    run("kept = 1")
    done = run(code)
    assert (done["exit_code"], done["end_reason"]) == (exit_code, "ok" if exit_code == 0 else "error")
    assert (done["stderr"]["text"], done["state_lost"]) == (stderr, False)
    assert "error" not in done
    assert out(run("print(kept)")) == "1\n"


@pytest.mark.complaint(5)
def test_the_interpreters_death(run: Run) -> None:
    for code, exit_code in [("import os; os._exit(9)", 9), ("import os; os.kill(os.getpid(), 11)", 139)]:
        done = run(f"print('last words')\n{code}")
        assert (done["end_reason"], done["exit_code"], done["state_lost"]) == ("kernel_died", exit_code, True)
        assert done["stdout"]["text"] == "last words\n"
        assert out(run("print('a new one')")) == "a new one\n"


def test_out_of_memory(client: httpx.Client) -> None:
    sandbox = create_sandbox(client, memory_mb=256)
    runs = f"/v1/sandboxes/{sandbox['id']}/runs"
    code = "print('filling')\nblocks = []\nwhile True: blocks.append(bytearray(b'x' * 1_000_000))"
    done = client.post(runs, json={"code": code}).json()
    assert (done["end_reason"], done["limits_hit"], done["state_lost"]) == ("oom", ["memory"], True)
    assert done["stdout"]["text"] == "filling\n"
    assert out(client.post(runs, json={"code": "print('fresh')"}).json()) == "fresh\n"
    client.delete(f"/v1/sandboxes/{sandbox['id']}")


def test_the_output_limit_counts_displays(run: Run) -> None:
    done = run("while True: display('x' * 1000)", output_max_bytes=50_000)
    assert done["end_reason"] == "output_limit"
    assert 30 < len(done["results"]) <= 50


def test_a_thread_does_not_delay_the_end(run: Run) -> None:
    begin = time.monotonic()
    done = run("import threading, time\nthreading.Thread(target=time.sleep, args=(8,)).start()\nprint('done')")
    assert out(done) == "done\n"
    assert time.monotonic() - begin < 6


# --- What belongs to one run ---


def test_env_is_put_back(run: Run) -> None:
    run("import os\nos.environ['KEPT'] = 'old'")
    inside = run("os.environ['KEPT'], os.environ['NEW']", env={"KEPT": "new", "NEW": "x"})
    assert text_result(inside) == "('new', 'x')"
    assert text_result(run("os.environ['KEPT'], os.environ.get('NEW')")) == "('old', None)"


def test_a_script_knows_its_name(run: Run) -> None:
    code = "import sys\nif __name__ == '__main__': print(__file__, sys.argv)"
    assert out(run(code, filename="tool.py", argv=["tool.py", "-v"])) == "/home/user/tool.py ['tool.py', '-v']\n"
    assert text_result(run("'__file__' in globals(), sys.argv")) == "(False, [''])"


def test_a_program_ends_as_in_an_interpreter_of_its_own(run: Run) -> None:
    code = (
        "import atexit, threading, time\n"
        "atexit.register(print, 'first registered, last called')\n"
        "def broken(): raise ValueError('in an exit function')\n"
        "atexit.register(broken)\n"
        "atexit.register(print, 'last registered, first called')\n"
        "threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()\n"
        "'not shown'"
    )
    done = run(code, filename="program.py")
    assert done["stdout"]["text"] == "thread\nlast registered, first called\nfirst registered, last called\n"
    assert "ValueError: in an exit function" in done["stderr"]["text"]
    assert (done["results"], done["end_reason"], done["exit_code"]) == ([], "ok", 0)
    assert text_result(run("'shown'")) == "'shown'"


def test_exit_functions_run_after_an_exception_too(run: Run) -> None:
    code = "import atexit\nprint_end = atexit.register(lambda: print('end'))\natexit.unregister(print)\nraise SystemExit(3)"
    done = run(code, filename="program.py")
    assert (done["stdout"]["text"], done["exit_code"]) == ("end\n", 3)
    removed = run("import atexit\ndef f(): print('f')\natexit.register(f)\natexit.unregister(f)", filename="p.py")
    assert removed["stdout"]["text"] == ""


def test_cwd_is_entered_and_stays(run: Run) -> None:
    run("import os; os.makedirs('deep')")
    assert text_result(run("os.getcwd()", cwd="/home/user/deep")) == "'/home/user/deep'"
    assert text_result(run("os.getcwd()")) == "'/home/user/deep'"
    missing = run("1", cwd="/no/such")
    assert (missing["end_reason"], missing["error"]["name"]) == ("error", "FileNotFoundError")


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(method: str, run: Run) -> None:
    code = (
        "import multiprocessing\ndef square(x): return x * x\n"
        f"if __name__ == '__main__':\n    with multiprocessing.get_context('{method}').Pool(2) as pool:\n"
        "        print(pool.map(square, [1, 2, 3]))\n"
    )
    assert out(run(code, filename="pool.py", files=[{"path": "pool.py", "content": code}])) == "[1, 4, 9]\n"


def test_modules_beside_the_code_are_imported(run: Run) -> None:
    assert out(run("import helper", files=[{"path": "helper.py", "content": "print('imported')"}])) == "imported\n"


def test_modules_of_the_user_do_not_keep_the_interpreter_from_starting(run: Run) -> None:
    names = ("json.py", "random.py", "asyncio.py", "IPython.py", "typing.py")
    run("import os; os._exit(0)", files=[{"path": name, "content": "raise ImportError('mine')"} for name in names])
    assert out(run("print('started')")) == "started\n"
    assert run("import importlib, sys; sys.modules.pop('random', None); import random")["error"]["value"] == "mine"


def test_no_module_of_ours_is_in_the_way(run: Run) -> None:
    for name in ("driver", "channel", "streams", "errors", "shell", "displays"):
        assert run(f"import {name}")["error"]["name"] == "ModuleNotFoundError"


# --- stdin ---


def test_input(run: Run) -> None:
    done = run("name = input('name? ')\nprint('hello', name)\nprint(input())", stdin="ada\nlast")
    assert out(done) == "name? hello ada\nlast\n"


def test_stdin_as_bytes(run: Run) -> None:
    assert out(run("import sys; print(sys.stdin.buffer.read())", stdin="ü\n")) == "b'\\xc3\\xbc\\n'\n"


def test_children_read_the_runs_stdin(run: Run) -> None:
    assert out(run("!tr a-z A-Z", stdin="shout")) == "SHOUT"


@pytest.mark.complaint(10)
def test_input_without_stdin_says_how(run: Run) -> None:
    begin = time.monotonic()
    error = run("input('name? ')")["error"]
    assert error["name"] == "EOFError"
    assert "send `stdin` with the run" in error["value"]
    assert time.monotonic() - begin < 5


def test_stdin_of_a_run_is_gone_in_the_next(run: Run) -> None:
    run("first = input()", stdin="a\nb\nc\n")
    assert text_result(run("import sys\nfirst, sys.stdin.read()")) == "('a', '')"


# --- Code that breaks its interpreter's things ---


BREAKS = {
    "closes stdout": "import os; os.close(1)",
    "closes the stream": "import sys; sys.stdout.close()",
    "closes low descriptors": "import os; os.closerange(0, 10)",
    "moves stdout": "import os; os.dup2(os.open('log', os.O_CREAT | os.O_WRONLY), 1)",
    "replaces the handler": "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)",
    "replaces input": "import builtins, sys; sys.stdin = None",
    "removes the directory": "import os, shutil; os.makedirs('gone'); os.chdir('gone'); os.rmdir('../gone')",
}


@pytest.mark.parametrize("code", BREAKS.values(), ids=BREAKS.keys())
def test_the_next_run_works(code: str, run: Run) -> None:
    run(code)
    assert out(run("import os; os.chdir('/home/user')\nprint('fine', input())", stdin="x\n")) == "fine x\n"
    done = run("import time; time.sleep(60)", timeout_ms=300)
    assert (done["end_reason"], done["state_lost"]) == ("timeout", False)


def test_closing_everything_is_the_interpreters_end(run: Run) -> None:
    done = run("import os; os.closerange(0, 100_000)")
    assert done["end_reason"] in ("kernel_died", "ok")
    assert out(run("print('on it goes')")) == "on it goes\n"


def test_an_interrupt_repeats_nothing(client: httpx.Client, sandbox: dict[str, Any]) -> None:
    """It waits for the end of a print: behind the system call, the same line would be written once more."""
    for more in range(8):
        body = {"code": "for i in range(10**9): print(i)", "timeout_ms": 150 + more, "inline_bytes": 4 << 20}
        done = client.post(f"/v1/sandboxes/{sandbox['id']}/runs", json=body).json()
        assert (done["end_reason"], done["state_lost"]) == ("timeout", False)
        lines = done["stdout"]["text"].split("\n")
        assert lines[:-1] == [str(number) for number in range(len(lines) - 1)]
