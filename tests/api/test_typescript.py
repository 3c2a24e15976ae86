"""The TypeScript interpreter of a context: JavaScript whose types are taken out first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import Cli, Run, result_text, runner


@pytest.fixture
def ts(client: httpx.Client, shared: dict[str, Any]) -> Run:
    return runner(client, shared, language="typescript")


RESULTS = {
    "const x: number = 6 * 7; x": "42",
    "enum Colour { Red, Green }; Colour[Colour.Green]": "'Green'",
    "namespace N { export const v = 5 }; N.v": "5",
    "class P { constructor(private a: number) {} }; new P(3)": "P { a: 3 }",
    "abstract class A { abstract f(): void }; A.name": "'A'",
    "const f = <T,>(value: T): T => value; f<string>('x')": "'x'",
    "let a: unknown = 1; (a as number)!": "1",
    "{ a: 1, b: <any>2 }": "{ a: 1, b: 2 }",
    "await Promise.resolve<number>(4)": "4",
    "const q = { a: 1 } satisfies Record<string, number>; q": "{ a: 1 }",
    "function seen(kind: any) { kind.seen = true }; @seen class D {}; (D as any).seen": "true",
    "export const exported: number = 1; exported": "1",
    "import { join } from 'path'; import type { Stats } from 'fs'; join('a', 'b')": "'a/b'",
    "'text only'": "'text only'",
}


@pytest.mark.parametrize("code", RESULTS)
def test_results(code: str, ts: Run) -> None:
    assert result_text(ts(code)) == RESULTS[code]


@pytest.mark.parametrize("code", ["interface Q { a: number }", "type T = string", "", "declare const x: number"])
def test_no_result(code: str, ts: Run) -> None:
    done = ts(code)
    assert (done["end_reason"], done["results"]) == ("ok", [])


def test_state_stays_from_run_to_run(ts: Run) -> None:
    ts("import { basename } from 'path'; let kept: number = 1; class Kept { v = 2 }")
    assert result_text(ts("[kept, new Kept().v, basename('/a/b')]")) == "[ 1, 2, 'b' ]"
    ts("let kept: string = 'anew'")
    assert result_text(ts("kept")) == "'anew'"


def test_errors_are_where_they_are_in_the_source(ts: Run) -> None:
    code = "// esbuild leaves out comments\n\ninterface I { a: number }\n\nfunction fails(text: string): never {\n\n  throw new Error(text);\n}\n\nfails('x')"
    error = ts(code)["error"]
    assert (error["name"], error["value"], error["line"]) == ("Error", "x", 7)
    assert [line.rpartition(">")[2] for line in error["traceback"][1:]] == [":7:9)", ":10:1"]
    printed = ts("\n// two\n\ntry { (null as any).x } catch (e) { console.log((e as Error).stack) }")
    assert ":4:21" in printed["stdout"]["text"]
    late = ts("// one\n\nsetTimeout(() => {\n\n  throw new Error('late') }, 1); await new Promise((go) => setTimeout(go, 50))")
    assert late["error"]["line"] == 5


@pytest.mark.parametrize(
    ("code", "line", "column"), [("let y: = 3", 1, 7), ("\nlet z: number = ;", 2, 16), ("enum {", 1, 5), ("const s: string = 'open", 1, 23)]
)
def test_code_that_is_none_names_its_place(code: str, line: int, column: int, ts: Run) -> None:
    error = ts(code)["error"]
    assert (error["name"], error["line"]) == ("SyntaxError", line)
    assert error["traceback"][0].endswith(f">:{line}")
    assert error["traceback"][1] == code.split("\n")[line - 1]
    assert error["traceback"][2] == " " * column + "^"


def test_typescript_files_are_imported(ts: Run) -> None:
    files = [
        {"path": "lib.ts", "content": "// c\n\nexport const n: number = 9;\nexport default class K {}\nexport function u(): never {\n  throw new Error('in u') }"},
        {"path": "uses.ts", "content": "import { n } from './lib';\nexport const doubled: number = n * 2;"},
    ]
    assert result_text(ts("import K, { n } from './lib.ts'; [n, K.name]", files=files)) == "[ 9, 'K' ]"
    assert result_text(ts("import { doubled } from './uses'; doubled")) == "18"
    assert result_text(ts("require('./lib.ts').n")) == "9"
    error = ts("import { u } from './lib.ts'\nu()")["error"]
    assert (error["line"], error["traceback"][1]) == (2, "    at u (/home/user/lib.ts:6:9)")


def test_endless_code_is_interrupted_and_the_types_still_go(ts: Run) -> None:
    ts("let kept: string = 'kept'")
    done = ts("for (;;);", timeout_ms=500)
    assert (done["end_reason"], done["state_lost"], done["error"]["name"]) == ("timeout", False, "Interrupted")
    assert result_text(ts("kept as string")) == "'kept'"


def test_esbuild_may_be_killed(ts: Run) -> None:
    assert result_text(ts("const before: number = 1; before")) == "1"
    ts("require('child_process').spawnSync('pkill', ['-x', 'esbuild'])")
    assert result_text(ts("const after: number = 2; after")) == "2"


def test_contexts_share_nothing(run: Run) -> None:
    run("globalThis.mine = 1", language="typescript")
    assert result_text(run("typeof mine", language="javascript")) == "'undefined'"
    assert result_text(run("mine", language="typescript")) == "1"


def test_stdin_and_env(ts: Run) -> None:
    assert result_text(ts("[require('fs').readFileSync(0, 'utf8'), process.env.X as string]", stdin="in", env={"X": "y"})) == "[ 'in', 'y' ]"


def test_programs(ts: Run, cli: Cli, tmp_path: Path) -> None:
    done = ts("setTimeout((): void => console.log('later'), 20); 'not shown'", filename="tool.ts", argv=["tool.ts"])
    assert (done["stdout"]["text"], done["results"]) == ("later\n", [])
    for name in ("a.ts", "a.mts", "a.cts"):
        (tmp_path / name).write_text("const text: string = process.argv[2]!;\nconsole.log(text)")
        assert cli("run", "-q", name, "word", cwd=tmp_path).stdout == "word\n"
