"""The JavaScript interpreter of a context, seen through runs: what code may expect of it."""

from __future__ import annotations

import base64
import re
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import Cli, Events, Run, create_sandbox, result_text, runner, stream
from service import wait_until

OURS = Path(__file__).resolve().parents[2] / "kernels" / "node"
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def js(client: httpx.Client, shared: dict[str, Any]) -> Run:
    """js(code, **fields): runs JavaScript in the shared sandbox."""
    return runner(client, shared, language="javascript")


@pytest.fixture
def js_events(client: httpx.Client, shared: dict[str, Any]) -> Events:
    def call(code: str, **fields: Any) -> list[Any]:
        body = {"code": code, "language": "javascript", **fields}
        return stream(client, f"/v1/sandboxes/{shared['id']}/runs", body)

    return call


def out(run: dict[str, Any]) -> str:
    assert run["end_reason"] == "ok", (run.get("error"), run["message"], run["stderr"])
    return run["stdout"]["text"]


# --- Results ---


RESULTS = {
    "6 * 7": "42",
    "1; 'two'": "'two'",
    "let a = 5; a": "5",
    "'ü' + `${1 + 1}`": "'ü2'",
    "({b: [1, {c: new Map([['k', 1]])}]})": "{ b: [ 1, { c: [Map] } ] }",
    "{ a: 1 }": "{ a: 1 }",
    "{ a: await 1 }": "{ a: 1 }",
    "{ let inner = 3; inner * 2 }": "6",
    "null": "null",
    "-0": "-0",
    "NaN": "NaN",
    "10n ** 20n": "100000000000000000000n",
    "Symbol('s')": "Symbol(s)",
    "(function named() {})": "[Function: named]",
    "Promise.resolve(1)": "Promise { 1 }",
    "await Promise.resolve(1)": "1",
    "class Point { x = 1 }; new Point()": "Point { x: 1 }",
    "/* a comment */ 8 // and one behind": "8",
    "typeof require('node:fs').readFileSync": "'function'",
    "fs.constants.O_RDONLY": "0",
    "'c\\udfff'": "'c\\udfff'",
}


@pytest.mark.parametrize("code", RESULTS)
def test_the_last_expression_is_the_result(code: str, js: Run) -> None:
    assert result_text(js(code)) == RESULTS[code]


@pytest.mark.parametrize("code", ["undefined", "let quiet = 1", "function f() {}", "class C {}", "", "// nothing", "if (0) 1"])
def test_no_result(code: str, js: Run) -> None:
    done = js(code)
    assert (done["end_reason"], done["results"]) == ("ok", [])


def test_names_may_be_declared_anew(js: Run) -> None:
    for value in (1, 2):
        js(f"let one = {value}; const two = {value}; class Three {{ v = {value} }}; function four() {{ return {value} }}")
        assert result_text(js("[one, two, new Three().v, four()]")) == f"[ {value}, {value}, {value}, {value} ]"


@pytest.mark.parametrize(("first", "second"), [("const", "let"), ("let", "const"), ("const", "const"), ("let", "let")])
def test_const_and_let_may_take_each_others_place(first: str, second: str, fresh: Run) -> None:
    fresh(f"{first} taken = 1")
    assert result_text(fresh(f"{second} taken = 2; taken")) == "2"
    assert fresh("const held = 1; held = 2", filename="program.js")["error"]["name"] == "TypeError"


BEFORE = {"function": "function taken() { return 1 }", "var": "var taken = 1", "class": "class taken {}", "let": "let taken = 1", "const": "const taken = 1"}
AFTER = {
    "let": "let taken = 2; taken",
    "const": "const taken = 2; taken",
    "var": "var taken = 2; taken",
    "pattern": "const { a, taken } = { taken: 2 }; taken",
    "class": "class taken { static v = 2 }\n(taken.v)",
    "function": "function taken() { return 2 }\ntaken()",
    "async function": "async function taken() { return 2 }\nawait taken()",
    "import": "import { sep as taken } from 'path'; taken && 2",
    "behind await": "await 1; const taken = 2; taken",
}


@pytest.mark.parametrize("second", AFTER)
def test_a_name_may_be_declared_in_another_way(second: str, fresh: Run) -> None:
    for first in BEFORE.values():
        assert fresh(first)["end_reason"] == "ok"
        assert result_text(fresh(AFTER[second])) == "2", first
    assert result_text(fresh("let taken; taken === undefined")) == "true"
    twice = fresh("let same = 1; let same = 2")
    assert twice["error"]["value"] == "Identifier 'same' has already been declared"


def test_code_that_only_looks_like_that_runs_once(fresh: Run) -> None:
    """An error of the code itself, in the words of the one that V8 has before it runs any."""
    fresh("var count = 0; function taken() {}")
    done = fresh("count++; throw new SyntaxError(\"Identifier 'taken' has already been declared\")")
    assert done["error"]["name"] == "SyntaxError"
    assert result_text(fresh("count")) == "1"
    fresh("(0, eval)('count++; let odd = 1; let odd = 2')")
    assert result_text(fresh("count")) == "1"


def test_the_last_result_has_a_name(run: Run) -> None:
    assert result_text(run("'first'", language="javascript")) == "'first'"
    assert result_text(run("_ + '!'", language="javascript")) == "'first!'"
    assert result_text(run("const _ = 'mine'; _", language="javascript")) == "'mine'"


def test_executions_are_counted(run: Run) -> None:
    assert [run("1", language="javascript")["execution_count"] for _ in range(3)] == [1, 2, 3]


def test_languages_share_files_and_nothing_else(run: Run) -> None:
    run("globalThis.mine = 1; fs.writeFileSync('note.txt', 'hello')", language="javascript")
    assert run("print(open('note.txt').read())")["stdout"]["text"] == "hello\n"
    assert result_text(run("typeof mine", language="typescript")) == "'undefined'"


# --- Output ---


def test_console(js: Run) -> None:
    done = js("console.log('a', 1, {b: 2}); console.error('wrong'); console.info('%s!', 'i'); console.warn('w')")
    assert (out(done), done["stderr"]["text"]) == ("a 1 { b: 2 }\ni!\n", "wrong\nw\n")
    assert "│ 1 │ 2 │" in out(js("console.table([{a: 1, b: 2}])"))
    assert out(js("console.group('g'); console.log('in'); console.groupEnd(); console.log('out')")) == "g\n  in\nout\n"
    assert re.fullmatch(r"t: [\d.]+m?s\n", out(js("console.time('t'); console.timeEnd('t')")))


def test_streams_keep_their_order(js_events: Events) -> None:
    seen = js_events("for (let i = 0; i < 30; ++i) { console.log('o', i); console.error('e', i) }")
    written = [(event.type, event.data["text"]) for event in seen if event.type in ("stdout", "stderr")]
    assert written == [pair for i in range(30) for pair in (("stdout", f"o {i}\n"), ("stderr", f"e {i}\n"))]


def test_displays_keep_their_place_among_output(js_events: Events) -> None:
    seen = js_events("for (let i = 0; i < 10; ++i) { console.log(i); display(i) }\nconsole.log('end')")
    assert [event.type for event in seen] == ["started", *["stdout", "display"] * 10, "stdout", "ended"]


def test_text_without_a_line_end_is_live(js_events: Events) -> None:
    code = (
        "const pause = (ms) => new Promise((go) => setTimeout(go, ms));\n"
        "process.stdout.write('a'); await pause(200); process.stdout.write('b'); await pause(200);"
    )
    assert [event.data["text"] for event in js_events(code) if event.type == "stdout"] == ["a", "b"]


def test_output_of_children(js: Run) -> None:
    code = (
        "const { spawnSync, spawn } = require('child_process');\n"
        "console.log('before'); spawnSync('echo', ['child'], {stdio: 'inherit'}); console.log('after');\n"
        "const late = spawn('echo', ['late'], {stdio: 'inherit'});\n"
        "await new Promise((go) => late.on('exit', go)); console.log(late.exitCode)"
    )
    assert out(js(code)) == "before\nchild\nafter\nlate\n0\n"


def test_the_pipes_stay_blocking(js: Run) -> None:
    """A child that expects to write all at once gets a pipe that lets it."""
    code = "require('child_process').spawnSync('python3', ['-c', 'import os; print(os.get_blocking(1))'], {stdio: 'inherit'})"
    assert out(js(f"process.stdout.write(''); {code}; undefined")) == "True\n"
    big = "print('x' * 3_000_000)"
    done = js(f"require('child_process').spawnSync('python3', ['-c', \"{big}\"], {{stdio: 'inherit'}}).status")
    assert (done["stdout"]["bytes"], result_text(done)) == (3_000_001, "0")


def test_output_of_worker_threads(js: Run) -> None:
    code = (
        "const { Worker } = require('worker_threads');\n"
        "const worker = new Worker(\"console.log('from a worker')\", {eval: true});\n"
        "await new Promise((go) => worker.on('exit', go)); undefined"
    )
    assert out(js(code)) == "from a worker\n"


def test_much_output_is_fast(js: Run) -> None:
    begin = time.monotonic()
    done = js("const megabyte = 'x'.repeat(1_000_000); for (let i = 0; i < 200; ++i) process.stdout.write(megabyte); 0")
    assert done["stdout"]["bytes"] == 200_000_000
    assert time.monotonic() - begin < 30


def test_streams_take_what_they_take_in_node(js: Run) -> None:
    code = (
        "process.stdout.write('text '); process.stdout.write(Buffer.from('buffer ')); process.stdout.write('aGV4', 'base64');\n"
        "process.stdout.end(); await new Promise((go) => process.stdout.write(' called\\n', go));\n"
        "require('stream').Readable.from(['pi', 'ped\\n']).pipe(process.stdout); await new Promise((go) => setTimeout(go, 50))"
    )
    assert out(js(code)) == "text buffer hex called\npiped\n"
    assert js("process.stdout.write(5)")["error"]["name"] == "TypeError"


def test_the_output_limit(js: Run) -> None:
    done = js("while (true) console.log('x'.repeat(99))", output_max_bytes=5500)
    assert (done["end_reason"], done["stdout"]["bytes"], done["state_lost"]) == ("output_limit", 5500, False)


# --- Displays ---


DISPLAYS = {
    "display.html('<b>x</b>')": ("text/html", "<b>x</b>"),
    "display.markdown('# x')": ("text/markdown", "# x"),
    "display.latex('$x$')": ("text/latex", "$x$"),
    "display.svg('<svg/>')": ("image/svg+xml", "<svg/>"),
    "display.json({a: [1, null, NaN, 5n]})": ("application/json", {"a": [1, None, None, 5]}),
    "display.pdf(Buffer.from('%PDF'))": ("application/pdf", "JVBERg=="),
    "display.javascript('1')": ("application/javascript", "1"),
    "display({'e2b/chart': {type: 'line'}, 'e2b/data': {a: [1]}}, {raw: true})": ("e2b/data", {"a": [1]}),
    "display.png(Buffer.from('abc'))": ("image/png", "YWJj"),
    "display.jpeg(new Uint8Array([1, 2]))": ("image/jpeg", "AQI="),
    "display({a: 1})": ("text/plain", "{ a: 1 }"),
    "display({'text/html': '<i>'}, {raw: true})": ("text/html", "<i>"),
    "display({[Symbol.for('Jupyter.display')]: () => ({'text/html': '<u>'})})": ("text/html", "<u>"),
    "await display({[Symbol.for('Jupyter.display')]: async () => ({'text/html': '<u>'})})": ("text/html", "<u>"),
    "display({toDataURL: () => 'data:image/png;base64,AAAA'})": ("image/png", "AAAA"),
    "display({outerHTML: '<p>x</p>'})": ("text/html", "<p>x</p>"),
    "display({outerHTML: '<svg></svg>'})": ("image/svg+xml", "<svg></svg>"),
}


@pytest.mark.parametrize("code", DISPLAYS)
def test_displays_by_mime_type(code: str, js: Run) -> None:
    done = js(code)
    mime, expected = DISPLAYS[code]
    assert done["end_reason"] == "ok", done
    (shown,) = done["results"]
    assert (shown["type"], shown["data"][mime]) == ("display", expected)


def test_pictures_and_own_representations_as_results(js: Run) -> None:
    (shown,) = js(f"Buffer.from('{base64.b64encode(PNG).decode()}', 'base64')")["results"]
    assert (shown["type"], base64.b64decode(shown["data"]["image/png"])) == ("result", PNG)
    (shown,) = js("({[Symbol.for('Jupyter.display')]: () => ({'text/markdown': '*m*'})})")["results"]
    assert (shown["type"], shown["data"]) == ("result", {"text/markdown": "*m*"})


def test_a_display_can_be_updated_and_cleared(js_events: Events) -> None:
    seen = js_events(
        "const bar = display('one', {display_id: 'bar'}); bar.update('two');\n"
        "display.update('bar', 'three'); display.clear({wait: true})"
    )
    shown = [event for event in seen if event.type not in ("started", "ended")]
    assert [event.type for event in shown] == ["display", "display_update", "display_update", "clear_output"]
    assert [event.data.get("display_id") for event in shown] == ["bar", "bar", "bar", None]
    assert shown[2].data["data"]["text/plain"] == "'three'"
    assert shown[3].data == {"wait": True}


def test_a_display_that_is_too_large_is_named_instead(js: Run) -> None:
    done = js("display.html('x'.repeat(9_000_000)); console.log('goes on')")
    assert out(done) == "goes on\n"
    assert "9,000" in done["results"][0]["data"]["text/plain"]
    assert "left out" in done["results"][0]["data"]["text/plain"]


def test_a_large_picture_is_named_instead(js: Run) -> None:
    (shown,) = js("display({'image/png': Buffer.alloc(5_000_000), 'text/html': '<i>'}, {raw: true})")["results"]
    assert set(shown["data"]) == {"text/plain", "text/html"}
    assert "[image/png of 5,000,001 bytes is left out" in shown["data"]["text/plain"]


def test_json_of_any_shape_is_taken(js: Run) -> None:
    code = (
        "let deep = []; for (let i = 0; i < 500; ++i) deep = [deep];\nconst loop = {}; loop.self = loop;\n"
        "display.json([deep, loop, 2n ** 400n, Infinity, new Set([1, 2]), {3: 'key'}, 'a\\ud800']); console.log('ok')"
    )
    done = js(code)
    assert out(done) == "ok\n"
    assert done["results"][0]["data"]["application/json"][4:] == [[1, 2], {"3": "key"}, "a\ufffd"]


# --- Modules ---


MODULES = [
    {"path": "lib/counter.mjs", "content": "export let count = 7;\nexport default (x) => x * 2;\nexport const where = import.meta.url;"},
    {"path": "lib/old.cjs", "content": "module.exports = {a: 1, main: require.main === module, dir: __dirname};"},
    {"path": "lib/data.json", "content": '{"k": "v"}'},
    {"path": "node_modules/pack/package.json", "content": '{"name": "pack", "exports": {"import": "./m.mjs", "require": "./c.cjs"}}'},
    {"path": "node_modules/pack/m.mjs", "content": "export const kind = 'module';"},
    {"path": "node_modules/pack/c.cjs", "content": "exports.kind = 'script';"},
]

IMPORTS = {
    "import fs from 'node:fs'; typeof fs.readFileSync": "'function'",
    "import double, { count as c } from './lib/counter.mjs'; [double(c), c]": "[ 14, 7 ]",
    "import {\n  count,\n  where,\n} from './lib/counter.mjs'; where": "'file:///home/user/lib/counter.mjs'",
    "import * as whole from './lib/counter.mjs'; Object.keys(whole)": "[ 'count', 'default', 'where' ]",
    "import old from './lib/old.cjs'; old.a": "1",
    "import data from './lib/data.json' with {type: 'json'}; data": "{ k: 'v' }",
    "import './lib/counter.mjs'; 'imported'": "'imported'",
    "import { kind } from 'pack'; kind": "'module'",
    "require('pack').kind": "'script'",
    "require('./lib/old.cjs')": "{ a: 1, main: false, dir: '/home/user/lib' }",
    "require('./lib/data.json').k": "'v'",
    "(await import('./lib/counter.mjs')).count": "7",
    "const later = () => import('./lib/counter.mjs'); (await later()).count": "7",
    "[import.meta.dirname, import.meta.resolve('./lib/old.cjs')]": "[ '/home/user', 'file:///home/user/lib/old.cjs' ]",
    "[__dirname, typeof __filename, typeof module, typeof exports]": "[ '/home/user', 'string', 'object', 'object' ]",
    "export const exported = 5; exported": "5",
    "'import x from \"y\"'": "'import x from \"y\"'",
}


@pytest.mark.parametrize("code", IMPORTS)
def test_imports(code: str, js: Run) -> None:
    done = js(code, files=MODULES)
    assert result_text(done) == IMPORTS[code]
    assert done["stderr"]["text"] == ""


def test_imported_names_stay(js: Run) -> None:
    js("import { join as glue } from 'path'")
    assert result_text(js("glue('a', 'b')")) == "'a/b'"


@pytest.mark.parametrize(
    ("code", "name", "value"),
    [
        ("import { nope } from 'fs'", "SyntaxError", "does not provide an export named 'nope'"),
        ("import 'no-such-package'", "Error", "Cannot find package 'no-such-package'"),
        ("await import('./missing.mjs')", "Error", "Cannot find module '/home/user/missing.mjs'"),
        ("require('./missing')", "Error", "Cannot find module './missing'"),
        ("import from 'x'", "SyntaxError", "Cannot use import statement outside a module"),
    ],
)
def test_imports_that_fail(code: str, name: str, value: str, js: Run) -> None:
    done = js(code)
    assert (done["end_reason"], done["error"]["name"]) == ("error", name)
    assert value in done["error"]["value"]


def test_modules_are_those_of_the_working_directory(run: Run) -> None:
    run("0", language="javascript", files=[{"path": "deep/here.mjs", "content": "export const v = 'deep';"}])
    assert result_text(run("import { v } from './here.mjs'; v", language="javascript", cwd="/home/user/deep")) == "'deep'"
    assert result_text(run("process.chdir('..'); process.cwd()", language="javascript")) == "'/home/user'"
    assert run("await import('./here.mjs')", language="javascript")["end_reason"] == "error"


# --- await ---


def test_top_level_await(js: Run) -> None:
    assert result_text(js("await new Promise((go) => setTimeout(() => go('woke'), 10))")) == "'woke'"
    assert out(js("for await (const x of [1, Promise.resolve(2)]) console.log(x)")) == "1\n2\n"


def test_timers_go_on_between_runs(js: Run) -> None:
    js("globalThis.ticks = 0; globalThis.timer = setInterval(() => ++ticks, 10); 0")
    time.sleep(0.5)
    assert int(result_text(js("clearInterval(timer); ticks"))) > 5


@pytest.mark.parametrize("cut", ["process.exit(0)", "for (;;);"])
def test_timers_work_after_one_was_cut_off(cut: str, run: Run) -> None:
    run(f"setTimeout(() => {{ {cut} }}, 5)", language="javascript", filename="a.js", timeout_ms=1000)
    for ms in (5, 6):
        assert result_text(run(f"await new Promise((go) => setTimeout(() => go('fires'), {ms}))", language="javascript")) == "'fires'"
    done = run("setTimeout(() => console.log('later'), 30)", language="javascript", filename="b.js")
    assert out(done) == "later\n"


def test_what_can_never_come_is_an_error_at_once(run: Run) -> None:
    begin = time.monotonic()
    done = run("console.log('waits'); await new Promise(() => {})", language="javascript")
    assert (done["end_reason"], done["exit_code"], done["stdout"]["text"]) == ("error", 13, "waits\n")
    assert "can never come" in done["error"]["value"]
    assert time.monotonic() - begin < 10


# --- Errors ---


def test_an_error_has_name_value_line_and_stack(run: Run) -> None:
    done = run("function inner(x) {\n    return x.y;\n}\n\ninner(null)", language="javascript")
    error = done["error"]
    assert (done["end_reason"], done["exit_code"], done["stderr"]["bytes"]) == ("error", 1, 0)
    assert (error["name"], error["line"]) == ("TypeError", 2)
    assert error["value"] == "Cannot read properties of null (reading 'y')"
    assert error["traceback"] == [
        "TypeError: Cannot read properties of null (reading 'y')",
        "    at inner (<cell-1>:2:14)",
        "    at <cell-1>:5:1",
    ]


@pytest.mark.parametrize(
    "code",
    ["throw new Error('x')", "null.x", "await 1; null.x", "JSON.parse('{')", "require('./nope')", "import 'nope'", "fs.readFileSync('nope')"],
)
def test_stacks_have_no_colours_and_no_frames_of_ours(code: str, js: Run) -> None:
    error = js(code)["error"]
    text = "\n".join(error["traceback"])
    for foreign in ("\x1b", "/opt/cloister", "__cloister__", "node:inspector", "Session.post"):
        assert foreign not in text
    assert "/opt/cloister" not in result_text(js("_error?.stack ?? ''"))


@pytest.mark.parametrize(
    ("code", "line"),
    [("let a = 1\nlet b = ;", 2), ("\n\nfoo(", 4), ("return 5", 1), ("let a;\nlet a;", 2), ("'open", 1), ("await = 1\n}", 1)],
)
def test_syntax_errors_have_their_line(code: str, line: int, js: Run) -> None:
    error = js(code)["error"]
    assert (error["name"], error["line"]) == ("SyntaxError", line)
    assert re.match(rf"<cell-\d+>:{line}$", error["traceback"][0])
    assert error["traceback"][-1].startswith("SyntaxError: ")


def test_lines_behind_imports_are_right(js: Run) -> None:
    error = js("import {\n  readFileSync,\n} from 'fs'\n\nthrow new Error('here')")["error"]
    assert error["line"] == 5


def test_causes_and_groups_are_shown(js: Run) -> None:
    caused = js("throw new Error('outer', {cause: new TypeError('inner')})")["error"]
    assert any("[cause]: TypeError: inner" in line for line in caused["traceback"])
    group = js("await Promise.any([Promise.reject(new RangeError('first')), Promise.reject(new Error('second'))])")["error"]
    assert group["name"] == "AggregateError"
    assert any("RangeError: first" in line for line in group["traceback"])
    coded = js("fs.readFileSync('/no/such')")["error"]
    assert any("code: 'ENOENT'" in line for line in coded["traceback"])


def test_anything_may_be_thrown(js: Run) -> None:
    for thrown, shown in {"5": "5", "'text'": "'text'", "null": "null", "undefined": "undefined", "({a: 1})": "{ a: 1 }"}.items():
        done = js(f"throw {thrown}")
        assert (done["end_reason"], done["error"]["value"]) == ("error", shown)


def test_endless_recursion_and_huge_messages_are_short(js: Run) -> None:
    error = js("function again() { return again() }\nagain()")["error"]
    assert (error["name"], error["line"]) == ("RangeError", 1)
    assert len(error["traceback"]) < 40
    error = js("throw new Error('x'.repeat(5_000_000))")["error"]
    assert len(error["value"]) < 70_000
    assert error["value"].endswith("more characters)")


def test_errors_that_nobody_catches_end_the_run_as_error(js: Run) -> None:
    done = js("setTimeout(() => { throw new Error('timer') }, 5);\nawait new Promise((go) => setTimeout(go, 50)); console.log('on')")
    assert (done["end_reason"], done["exit_code"], done["error"]["value"]) == ("error", 1, "timer")
    assert done["stdout"]["text"] == "on\n"
    done = js("Promise.reject(new RangeError('nobody')); 'went on'")
    assert (done["end_reason"], done["error"]["name"], len(done["results"])) == ("error", "RangeError", 1)
    done = js("Promise.reject(new Error('handled')).catch(() => {}); 'fine'")
    assert result_text(done) == "'fine'"
    done = js("process.nextTick(() => { throw new Error('one') }); process.nextTick(() => { throw new Error('two') })")
    assert done["error"]["value"] == "one"
    assert "Uncaught Error: two" in done["stderr"]["text"]


def test_own_handlers_get_what_nobody_catches(run: Run) -> None:
    code = (
        "process.once('uncaughtException', (error) => console.log('mine:', error.message));\n"
        "setTimeout(() => { throw new Error('timer') }, 5); await new Promise((go) => setTimeout(go, 50))"
    )
    assert out(run(code, language="javascript")) == "mine: timer\n"


def test_an_inspect_that_throws_is_the_codes_error(js: Run) -> None:
    done = js("({[Symbol.for('nodejs.util.inspect.custom')]() { throw new Error('mine') }})")
    assert (done["end_reason"], done["error"]["value"]) == ("error", "mine")


# --- Ends ---


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        ("process.exit(3)", 3),
        ("process.exit()", 0),
        ("process.exitCode = 4; 0", 4),
        ("try { process.exit(5) } finally { console.log('not this') }", 5),
        ("await 1; process.exit(6)", 6),
        ("setTimeout(() => process.exit(7), 5); await new Promise((go) => setTimeout(go, 60_000))", 7),
        ("(function deep() { process.exit(8) })(); console.log('nor this')", 8),
        ("process.exit(256 + 9)", 9),
    ],
)
def test_exit_codes(code: str, exit_code: int, js: Run) -> None:
    js("globalThis.kept = 1")
    done = js(code)
    assert (done["exit_code"], done["end_reason"]) == (exit_code, "ok" if exit_code == 0 else "error")
    assert (done["stdout"]["text"], done["state_lost"]) == ("", False)
    assert "error" not in done
    assert result_text(js("kept")) == "1"


@pytest.mark.parametrize(
    "code",
    [
        "while (true) {}",
        "await 1; for (;;);",
        "await new Promise((go) => setTimeout(go, 600_000))",
        "setTimeout(() => { for (;;); }); await new Promise((go) => setTimeout(go, 600_000))",
        "setImmediate(() => { for (;;); }); await new Promise((go) => setTimeout(go, 600_000))",
        "(function again() { return Promise.resolve().then(again) })(); await new Promise((go) => setTimeout(go, 600_000))",
        "while (true) { try { for (;;); } catch {} finally { continue } }",
        "/(a+)+b/.test('a'.repeat(60))",
        "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
        "while (true) console.log('flood')",
        "while (true) { console.log('o'); console.error('e') }",
        "while (true) display.html('<b>')",
        "require('child_process').execSync('sleep 600')",
        "JSON.stringify({toJSON() { for (;;); }})",
        "({[Symbol.for('nodejs.util.inspect.custom')]() { for (;;); }})",
    ],
)
def test_endless_code_is_interrupted_and_its_state_kept(code: str, js: Run) -> None:
    js("globalThis.kept = 'kept'")
    begin = time.monotonic()
    done = js(f"console.log('begun');\n{code}", timeout_ms=700)
    assert (done["end_reason"], done["state_lost"]) == ("timeout", False)
    assert done["stdout"]["text"].startswith("begun\n")
    assert done["error"]["name"] == "Interrupted"
    assert time.monotonic() - begin < 6
    assert result_text(js("kept")) == "'kept'"
    assert result_text(js("await new Promise((go) => setTimeout(() => go('timers work'), 5))")) == "'timers work'"


def test_interrupted_by_hand(client: httpx.Client, sandbox: dict[str, Any]) -> None:
    runs = f"/v1/sandboxes/{sandbox['id']}/runs"
    body = {"code": "console.log('up'); for (;;);", "language": "javascript", "wait": False}
    begun = client.post(runs, json=body).json()
    wait_until(lambda: client.get(f"/v1/runs/{begun['id']}").json()["state"] == "running", 30, "the run has begun")
    assert client.post(f"/v1/runs/{begun['id']}/interrupt").is_success
    wait_until(lambda: client.get(f"/v1/runs/{begun['id']}").json()["state"] == "ended", 10, "the run has ended")
    done = client.get(f"/v1/runs/{begun['id']}").json()
    assert (done["end_reason"], done["state_lost"]) == ("interrupted", False)


def test_the_interpreters_death(run: Run) -> None:
    for code, exit_code in [("process.kill(process.pid, 'SIGKILL')", 137), ("process.reallyExit(9)", 137), ("process.abort()", 134)]:
        done = run(f"console.log('last words'); {code}; for (;;);", language="javascript")
        assert (done["end_reason"], done["exit_code"], done["state_lost"]) == ("kernel_died", exit_code, True)
        assert done["stdout"]["text"] == "last words\n"
        assert out(run("console.log('a new one')", language="javascript")) == "a new one\n"


def test_out_of_memory(client: httpx.Client) -> None:
    sandbox = create_sandbox(client, memory_mb=256)
    runs = f"/v1/sandboxes/{sandbox['id']}/runs"
    code = "console.log('filling'); const blocks = []; for (;;) blocks.push(Buffer.alloc(1_000_000, 1))"
    done = client.post(runs, json={"code": code, "language": "javascript"}).json()
    assert (done["end_reason"], done["limits_hit"], done["state_lost"]) == ("oom", ["memory"], True)
    assert done["stdout"]["text"] == "filling\n"
    assert out(client.post(runs, json={"code": "console.log('fresh')", "language": "javascript"}).json()) == "fresh\n"
    client.delete(f"/v1/sandboxes/{sandbox['id']}")


# --- Programs ---


@pytest.fixture
def fresh(run: Run) -> Run:
    """JavaScript in a sandbox of its own, where nothing goes on in the background."""
    return lambda code, **fields: run(code, language="javascript", **fields)


def program(js: Run, code: str, **fields: Any) -> dict[str, Any]:
    return js(code, **{"filename": "tool.js", "argv": ["tool.js", "-v"], **fields})


def test_a_program_ends_when_nothing_is_left_to_wait_for(fresh: Run) -> None:
    js = fresh
    done = program(js, "setTimeout(() => console.log('later'), 50); console.log('first'); 'not shown'")
    assert (out(done), done["results"]) == ("first\nlater\n", [])
    server = (
        "import http from 'node:http'\nconst server = http.createServer((q, answer) => answer.end('served'));\n"
        "server.listen(0, async () => {\n"
        "  console.log(await (await fetch(`http://127.0.0.1:${server.address().port}`)).text()); server.close() })"
    )
    assert out(program(js, server)) == "served\n"
    assert program(js, "await new Promise(() => {})")["exit_code"] == 13


def test_a_program_knows_its_name(js: Run) -> None:
    assert out(program(js, "console.log(process.argv.slice(1), __filename, require.main === module)")) == (
        "[ '/home/user/tool.js', '-v' ] /home/user/tool.js true\n"
    )
    assert result_text(js("[process.argv.length, require.main]")) == "[ 1, undefined ]"
    error = program(js, "\nthrow new Error('x')")["error"]
    assert (error["line"], error["traceback"][1]) == (2, "    at tool.js:2:7")
    assert program(js, "null.x", filename="/home/user/a b.js")["error"]["line"] == 1


def test_a_programs_exit(fresh: Run) -> None:
    js = fresh
    done = program(js, "process.on('exit', (code) => console.log('bye', code)); process.exitCode = 3")
    assert (done["exit_code"], done["stdout"]["text"]) == (3, "bye 3\n")
    done = program(js, "process.on('exit', (code) => console.log('bye', code)); setTimeout(() => process.exit(4), 5)")
    assert (done["exit_code"], done["stdout"]["text"]) == (4, "bye 4\n")
    assert out(program(js, "console.log('quiet')")) == "quiet\n"
    again = "let n = 0; process.on('beforeExit', () => { if (n++ < 2) setTimeout(() => console.log('again'), 5) })"
    assert out(program(js, again)) == "again\nagain\n"


def test_a_program_ends_with_an_error_that_nobody_catches(fresh: Run) -> None:
    js = fresh
    done = program(js, "setTimeout(() => { throw new Error('first') }, 5); const t = setTimeout(() => console.log('never'), 300)")
    assert (done["end_reason"], done["exit_code"], done["error"]["value"]) == ("error", 1, "first")
    assert done["stdout"]["text"] == ""


def test_what_runs_in_the_background_does_not_keep_a_program(js: Run) -> None:
    js("globalThis.timer = setInterval(() => {}, 50); 0")
    assert out(program(js, "setTimeout(() => console.log('mine'), 60)")) == "mine\n"
    js("clearInterval(timer)")


def test_cli_runs_files_by_their_ending(cli: Cli, tmp_path: Path) -> None:
    for name in ("a.js", "a.mjs", "a.cjs"):
        (tmp_path / name).write_text("import os from 'os'\nconsole.log(process.argv.slice(1), typeof os.cpus)")
        assert cli("run", name, "x", cwd=tmp_path).stdout == f"[ '/home/user/{name}', 'x' ] function\n"
    (tmp_path / "fails.js").write_text("\nthrow new TypeError('at line two')")
    done = cli("run", "fails.js", cwd=tmp_path)
    assert (done.returncode, "TypeError: at line two" in done.stderr, "fails.js:2:7" in done.stderr) == (1, True, True)
    assert cli("run", "--language", "javascript", "-c", "6 * 7").stdout == "42\n"
    assert cli("run", "-q", "--language", "javascript", "-", stdin="console.log('from stdin')").stdout == "from stdin\n"


# --- What belongs to one run ---


def test_env_is_put_back(js: Run) -> None:
    js("process.env.KEPT = 'old'")
    assert result_text(js("[process.env.KEPT, process.env.NEW]", env={"KEPT": "new", "NEW": "x"})) == "[ 'new', 'x' ]"
    assert result_text(js("[process.env.KEPT, process.env.NEW]")) == "[ 'old', undefined ]"
    children = "require('child_process').execSync('echo $NEW').toString()"
    assert result_text(js(children, env={"NEW": "seen"})) == "'seen\\n'"


def test_cwd_is_entered_and_stays(run: Run) -> None:
    run("fs.mkdirSync('deep')", language="javascript")
    assert result_text(run("process.cwd()", language="javascript", cwd="/home/user/deep")) == "'/home/user/deep'"
    assert result_text(run("process.cwd()", language="javascript")) == "'/home/user/deep'"
    missing = run("1", language="javascript", cwd="/no/such")
    assert (missing["end_reason"], "ENOENT" in missing["error"]["value"]) == ("error", True)
    assert result_text(run("2", language="javascript")) == "2"


def test_files_that_a_run_makes_are_listed(run: Run) -> None:
    done = run("fs.writeFileSync('made.txt', 'x')", language="javascript")
    assert [artifact["path"] for artifact in done["artifacts"]] == ["/home/user/made.txt"]


# --- stdin ---


READS = {
    "fs.readFileSync(0, 'utf8')": "'ada\\nlast'",
    "let all = ''; for await (const part of process.stdin) all += part; all": "'ada\\nlast'",
    "const lines = []; for await (const line of require('readline').createInterface({input: process.stdin})) lines.push(line); lines": "[ 'ada', 'last' ]",
    "require('child_process').execFileSync('cat', {stdio: ['inherit', 'pipe', 'inherit']}).toString()": "'ada\\nlast'",
    "await new Promise((go) => process.stdin.setEncoding('utf8').once('data', go))": "'ada\\nlast'",
}


@pytest.mark.parametrize("code", READS)
def test_stdin(code: str, js: Run) -> None:
    assert result_text(js(code, stdin="ada\nlast")) == READS[code]
    assert result_text(js("fs.readFileSync(0, 'utf8')")) == "''"


def test_questions(js: Run) -> None:
    code = (
        "const rl = require('readline/promises').createInterface({input: process.stdin, output: process.stdout});\n"
        "const name = await rl.question('name? '); rl.close(); console.log('hello', name)"
    )
    assert out(js(code, stdin="ada\n")) == "name? hello ada\n"


def test_a_question_without_stdin_says_how(fresh: Run) -> None:
    js = fresh
    begin = time.monotonic()
    code = "await require('readline/promises').createInterface({input: process.stdin}).question('name? ')"
    assert "send `stdin` with the run" in js(code)["error"]["value"]
    assert time.monotonic() - begin < 10


def test_much_stdin(js: Run) -> None:
    text = "0123456789" * 80_000
    assert result_text(js("fs.readFileSync(0).length", stdin=text)) == "800000"
    assert result_text(js("'not read'", stdin=text)) == "'not read'"
    assert result_text(js("fs.readFileSync(0, 'utf8')")) == "''"


def test_stdin_that_does_not_come_can_be_interrupted(js: Run) -> None:
    for code in ("fs.readFileSync(0)", "for await (const part of process.stdin) console.log(part)"):
        done = js(code, stdin_open=True, timeout_ms=500)
        assert (done["end_reason"], done["state_lost"]) == ("timeout", False)
    assert result_text(js("fs.readFileSync(0, 'utf8')", stdin="next")) == "'next'"


def test_the_fifo_of_stdin_is_gone_with_the_run(js: Run) -> None:
    look = "fs.readdirSync('/proc/self/fd').map((fd) => { try { return fs.readlinkSync(`/proc/self/fd/${fd}`) } catch { return '' } })"
    assert "/run/cloister/" in result_text(js(f"{look}.find((path) => path.startsWith('/run/cloister'))", stdin="x"))
    assert result_text(js(f"{look}.filter((path) => path.startsWith('/run/cloister'))")) == "[]"


# --- Code that breaks its interpreter's things ---


BREAKS = {
    "ends the streams": "process.stdout.end(); process.stderr.destroy()",
    "removes handlers": "process.removeAllListeners(); 0",
    "replaces the console": "globalThis.console = undefined",
    "replaces globals": "globalThis.setImmediate = globalThis.Promise = globalThis.process = globalThis.Buffer = undefined",
    "replaces the helper": "globalThis.__cloister__ = 1; globalThis.require = 2; globalThis.display = 3",
    "declares global names": "class Map {} class Set {} class Promise {} let Object = 1, JSON = 2, Buffer = 3, Error = 4, process = 5",
    "formats stacks": "Error.prepareStackTrace = () => { throw 1 }",
    "handles the signal": "process.on('SIGINT', () => console.log('mine')); 0",
    "closes stdin": "fs.closeSync(0)",
    "removes the directory": "fs.mkdirSync('gone'); process.chdir('gone'); fs.rmdirSync('../gone')",
    "floods with timers": "for (let i = 0; i < 1000; ++i) setInterval(() => {}, 1); 0",
}


@pytest.mark.parametrize("code", BREAKS.values(), ids=BREAKS.keys())
def test_the_next_run_works(code: str, run: Run) -> None:
    def js(text: str, **fields: Any) -> dict[str, Any]:
        return run(text, language="javascript", **fields)

    js(code)
    assert result_text(js("6 * 7", cwd="/home/user")) == "42"
    done = js("for (;;);", timeout_ms=500)
    assert (done["end_reason"], done["state_lost"]) == ("timeout", False)
    assert result_text(js("'on it goes'")) == "'on it goes'"


def test_the_drivers_socket_is_not_inherited(js: Run) -> None:
    """Children have sockets too, but those of their own streams."""
    code = (
        "const ours = fs.readlinkSync('/proc/self/fd/3');\n"
        "const theirs = require('child_process').execSync('ls -l /proc/self/fd').toString();\n[ours.startsWith('socket:'), theirs.includes(ours)]"
    )
    assert result_text(js(code)) == "[ true, false ]"


# --- The driver's own parts ---


def test_units(run: Run) -> None:
    """`node --test` of kernels/node/tests, with the Node and the files of the image."""
    files = [{"path": f"node/tests/{path.name}", "content": path.read_text()} for path in (OURS / "tests").glob("*.js")]
    code = (
        "import subprocess\nsubprocess.run(['cp', '-r', '/opt/cloister/kernels/node', '.'], check=True)\n"
        "done = subprocess.run(['node', '--test', 'node/tests'], capture_output=True, text=True)\nprint(done.stdout)\ndone.returncode"
    )
    done = run(code, files=files)
    text = done["stdout"]["text"]
    assert done["results"][0]["data"]["text/plain"] == "0", text
    assert int(re.search(r"^# pass (\d+)$", text, re.MULTILINE)[1]) >= 50  # type: ignore[index]
