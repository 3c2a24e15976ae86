"""Each check of tools/tidy finds what it is for, and lets good code pass."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

TIDY = Path(__file__).resolve().parent.parent / "tidy_rules"
sys.path.insert(0, str(TIDY))

import code_rules  # noqa: E402
import contracts  # noqa: E402
import pages  # noqa: E402
import proofs  # noqa: E402
import rooms  # noqa: E402
from cpp import Source  # noqa: E402
from tree import Finding, Tree  # noqa: E402

Check = Callable[[Tree], Iterator[Finding]]


def found(check: Check, path: str, text: str, **others: str) -> list[str]:
    """What a check says about one file; `others` are further files, `__` in their names is a `/`."""
    more = {name.replace("__", "/").replace("_h", ".h"): content for name, content in others.items()}
    return [str(finding) for finding in check(Tree({path: text} | more))]


# --- Arrows ---


@pytest.mark.parametrize(
    ("path", "include"),
    [
        ("src/base/ids.cc", '"os/fd.h"'),
        ("src/wire/json.cc", '"os/fd.h"'),
        ("src/os/fd.cc", '"wire/json.h"'),
        ("src/engine/run.cc", '"jail/seccomp.h"'),
        ("src/engine/run.cc", '"http/server.h"'),
        ("src/ops/run_code.h", '"faces/rest/router.h"'),
        ("src/faces/rest/runs.cc", '"store/store.h"'),
        ("src/programs/agent/main.cc", '"loop/loop.h"'),
        ("src/programs/warden/main.cc", '"engine/run.h"'),
    ],
)
def test_a_wrong_include_is_found(path: str, include: str) -> None:
    findings = found(rooms.check_arrows, path, f"\n#include {include}\n")
    assert len(findings) == 1
    assert findings[0].startswith(f"{path}:2: ")
    assert include in findings[0]


@pytest.mark.parametrize(
    ("path", "include"),
    [
        ("src/base/ids.cc", '"base/ids.h"'),
        ("src/os/fd.cc", '"base/error.h"'),
        ("src/faces/rest/runs.cc", '"ops/run_code.h"'),
        ("src/programs/server/main.cc", '"faces/rest/router.h"'),
        ("src/wire/json.cc", "<vector>"),
    ],
)
def test_a_right_include_passes(path: str, include: str) -> None:
    assert found(rooms.check_arrows, path, f"#include {include}\n") == []


def test_a_new_room_needs_arrows() -> None:
    assert "no arrows" in found(rooms.check_arrows, "src/attic/box.cc", "")[0]


@pytest.mark.parametrize(
    ("path", "include", "ok"),
    [
        ("src/engine/run.cc", "<sys/wait.h>", False),
        ("src/os/process.cc", "<sys/wait.h>", True),
        ("src/jail/birth.cc", "<sys/mount.h>", True),
        ("src/ops/run_code.cc", "<linux/sched.h>", False),
        ("src/engine/run.cc", "<boost/asio/post.hpp>", False),
        ("src/loop/loop.h", "<boost/asio/post.hpp>", True),
        ("src/loop/loop.cc", "<boost/beast/core.hpp>", False),
        ("src/http/server.cc", "<boost/beast/core.hpp>", True),
        ("src/engine/run.cc", "<sqlite3.h>", False),
        ("src/engine/run.cc", "<boost/json.hpp>", True),
    ],
)
def test_libraries_have_their_rooms(path: str, include: str, ok: bool) -> None:
    assert (found(rooms.check_libraries, path, f"#include {include}\n") == []) is ok


def test_asio_is_not_named_elsewhere() -> None:
    assert found(rooms.check_asio_names, "src/engine/run.cc", "asio::awaitable<int> f();") != []
    assert found(rooms.check_asio_names, "src/engine/run.cc", "// asio:: is not for us\nTask<int> f();") == []


def test_raw_system_calls() -> None:
    assert found(rooms.check_raw_syscalls, "src/engine/run.cc", "int f() { return ::syscall(1); }") != []
    assert found(rooms.check_raw_syscalls, "src/os/process.cc", "int f() { return ::syscall(1); }") == []


# --- Coroutines ---


@pytest.mark.parametrize(
    "code",
    [
        "auto x = ok ? co_await f() : g();",
        "auto x = co_await f() ? 1 : 2;",
        "auto x = ok ? g() : co_await f();",
    ],
)
def test_conditionals_around_co_await(code: str) -> None:
    assert found(code_rules.check_coroutine_conditionals, "src/engine/run.cc", code) != []


@pytest.mark.parametrize(
    "code", ["co_await f(ok ? 1 : 2);", "auto x = std::max(co_await f(), 1);", "// a ? co_await b : c\n"]
)
def test_other_uses_of_co_await(code: str) -> None:
    assert found(code_rules.check_coroutine_conditionals, "src/engine/run.cc", code) == []


def test_capturing_coroutine_lambdas() -> None:
    bad = "void f() {\n    spawn([this, id]() -> Task<void> { co_await g(id); }());\n}"
    assert found(code_rules.check_coroutine_lambdas, "src/engine/run.cc", bad)[0].startswith("src/engine/run.cc:2: ")


@pytest.mark.parametrize(
    "code",
    [
        "void f() { spawn([](int id) -> Task<void> { co_await g(id); }(id)); }",
        "Task<void> f() { call([this] { return 1; }); co_await g(); }",
        "Task<void> f() { call([&] { spawn([](int i) -> Task<void> { co_return; }(1)); }); co_return; }",
        "int f() { int a[2] = {1, 2}; return a[0] + (b[i]); }",
    ],
)
def test_other_lambdas(code: str) -> None:
    assert found(code_rules.check_coroutine_lambdas, "src/engine/run.cc", code) == []


# --- Functions ---


def long_function(lines: int, head: str = "int f(int a)") -> str:
    return f"namespace x {{\n\n{head} {{\n" + "    step();\n" * (lines - 2) + "}\n\n}  // namespace x\n"


@pytest.mark.parametrize(
    "head",
    [
        "int f(int a)",
        "Result<int> Thing::make(std::string_view name) const noexcept",
        "Thing::Thing(int a)\n    : a_(a), b_{1}",
        "auto f() -> Task<Result<int>>",
        "~Thing()",
        "template <class T>\nbool operator==(const T& a, const T& b)",
    ],
)
def test_the_wall(head: str) -> None:
    extra = head.count("\n")
    check = code_rules.check_function_lengths
    assert found(check, "src/os/fd.cc", long_function(70 - extra, head)) == []
    findings = found(check, "src/os/fd.cc", long_function(71 - extra, head))
    assert len(findings) == 1
    assert "71 lines" in findings[0]


def test_methods_in_classes_count() -> None:
    method = "    int f() const {\n" + "        step();\n" * 70 + "    }\n"
    assert len(found(code_rules.check_function_lengths, "src/os/fd.h", "class X {\n  public:\n" + method + "};\n")) == 1


def test_tables_are_not_functions() -> None:
    table = "constexpr Row kTable[] = {\n" + "    {1, 2},\n" * 100 + "};\n"
    assert found(code_rules.check_function_lengths, "src/os/fd.cc", table) == []


def test_python_has_the_same_wall() -> None:
    text = "def f() -> None:\n" + "    step()\n" * 70
    assert found(code_rules.check_function_lengths, "tools/thing.py", text) != []


def test_the_ratchet_only_shrinks() -> None:
    long = {"src/os/fd.cc": long_function(80), code_rules.RATCHET: "src/os/fd.cc:f\n"}
    assert list(code_rules.check_function_lengths(Tree(long))) == []
    short = long | {"src/os/fd.cc": long_function(10)}
    assert "take it off" in str(next(code_rules.check_function_lengths(Tree(short))))


def test_functions_are_measured_from_their_first_line() -> None:
    source = Source("int a;\n\n// About f.\nint f() {\n    return 1;\n}\n")
    assert [(f.name, f.line, f.lines) for f in source.functions()] == [("f", 4, 3)]


# --- Calls, leftovers, headers, dead files ---


@pytest.mark.parametrize("call", ["exit(1)", "std::exit(1)", "system(x)", "popen(x, y)", "atoi(x)"])
def test_forbidden_calls(call: str) -> None:
    assert found(code_rules.check_forbidden_calls, "src/os/fd.cc", f"void f() {{ {call}; }}") != []


@pytest.mark.parametrize("call", ["_exit(1)", "quick_exit(1)", "on_exit(x)", "file.system(x)", 'log("exit(1)")'])
def test_other_calls(call: str) -> None:
    assert found(code_rules.check_forbidden_calls, "src/os/fd.cc", f"void f() {{ {call}; }}") == []


def test_leftovers() -> None:
    word = "TO" + "DO"
    assert found(code_rules.check_leftovers, "src/os/fd.cc", f"// {word}: later\n") != []
    assert found(code_rules.check_leftovers, "src/os/fd.cc", f"// {word}_LIST is a name\n") == []


def test_headers() -> None:
    assert len(found(code_rules.check_headers, "src/os/fd.h", "#include <x>\n")) == 2
    assert found(code_rules.check_headers, "src/os/fd.h", "// Fd: a descriptor.\n#pragma once\n") == []


def test_own_header_first() -> None:
    check = code_rules.check_own_header_first
    assert found(check, "src/os/fd.cc", '#include <x>\n#include "os/fd.h"\n', src__os__fd_h="") != []
    assert found(check, "src/os/fd.cc", '#include "os/fd.h"\n#include <x>\n', src__os__fd_h="") == []


def test_dead_headers() -> None:
    assert found(code_rules.check_dead_headers, "src/os/fd.h", "") != []
    assert found(code_rules.check_dead_headers, "src/os/fd.h", "", **{"src/os/fd.cc": '#include "os/fd.h"'}) == []


def test_dead_sources() -> None:
    cmake = {
        "CMakeLists.txt": "room(os LINK base)\nroom(rest DIR faces/rest LINK ops)\nprogram(cloisterd server rest)\n"
    }
    for path, alive in [
        ("src/os/fd.cc", True),
        ("src/faces/rest/router.cc", True),
        ("src/programs/server/main.cc", True),
        ("src/os/old/fd.cc", False),
        ("src/programs/attic/main.cc", False),
    ]:
        assert (list(code_rules.check_dead_sources(Tree({path: ""} | cmake))) == []) is alive, path


def test_dead_scripts() -> None:
    assert found(code_rules.check_dead_scripts, "tools/old.py", "") != []
    assert found(code_rules.check_dead_scripts, "tools/old.py", "", dev="python3 tools/old.py") == []


# --- Contracts ---

OPENAPI = """
paths:
  /healthz: {get: {operationId: healthz}}
  /v1/things/{thing_id}:
    get:
      operationId: getThing
components:
  schemas:
    Error: {properties: {error: {properties: {code: {enum: [not_found, internal]}}}}}
    Run: {properties: {end_reason: {enum: [ok, error]}}}
"""


def contract(**changes: str) -> Tree:
    texts = {
        contracts.OPENAPI: OPENAPI,
        contracts.ERRORS: "| kind | HTTP |\n|---|---|\n| `not_found` | 404 |\n| `internal` | 500 |\n\n"
        "| end reason | exit code |\n|---|---|\n| `ok` | 0 |\n| `error` | 1 |\n",
        "src/base/error.cc": 'return "not_found"; return "internal";',
        "src/wire/run_end.cc": '{"ok"}, {"error"}',
        "src/ops/get_thing.h": "",
        "src/faces/rest/router.cc": '{"GET", "/healthz"}, {"GET", "/v1/things/{thing_id}"}',
    }
    return Tree(texts | changes)


@pytest.mark.parametrize("check", contracts.CHECKS, ids=lambda check: check.__name__)
def test_a_kept_contract_passes(check: Check) -> None:
    assert list(check(contract())) == []


@pytest.mark.parametrize(
    ("check", "path", "text", "message"),
    [
        (contracts.check_operations, "src/ops/paint_thing.h", "", "no operation"),
        (
            contracts.check_operations,
            contracts.OPENAPI,
            OPENAPI + "# operationId: paintThing",
            "has no src/ops/paint_thing.h",
        ),
        (contracts.check_routes, "src/faces/rest/more.cc", '"/v1/secret"', "does not promise"),
        (contracts.check_routes, "src/faces/rest/router.cc", '"/healthz"', "does not serve"),
        (contracts.check_contract_text, contracts.OPENAPI, "a: {b: [{c: one, and two}]}", "`and two` is read as a key"),
        (contracts.check_error_kinds, "src/base/error.cc", 'return "not_found";', "`internal` is missing"),
        (contracts.check_error_kinds, "src/base/error.cc", '"not_found" "internal" "tired"', "`tired` is missing"),
        (contracts.check_end_reasons, "src/wire/run_end.cc", '"ok"', "`error` is missing"),
    ],
)
def test_a_broken_contract_is_found(check: Check, path: str, text: str, message: str) -> None:
    assert any(message in str(finding) for finding in check(contract(**{path: text})))


@pytest.mark.parametrize(
    ("table", "ok"),
    [
        ('    Denied{"mount", EPERM},\n', False),
        ('    // Mounts are made before.\n    Denied{"mount", EPERM},\n    Denied{"umount2", EPERM},\n', True),
        ('    Denied{"mount", EPERM},  // made before\n', True),
        (
            '    // Mounts.\n    Denied{"mount", EPERM},\n};\nconstexpr Denied more[] = {\n    Denied{"bpf", EPERM},\n',
            False,
        ),
    ],
)
def test_seccomp_entries_say_why(table: str, ok: bool) -> None:
    assert (found(contracts.check_seccomp_comments, "src/jail/seccomp.cc", table) == []) is ok


# --- Pages ---


def test_links() -> None:
    others = {"docs/glossary.md": "# Words\n\n## End reason\n", "src/os/fd.h": ""}
    for link, ok in [
        ("docs/glossary.md", True),
        ("docs/glossary.md#end-reason", True),
        ("docs/glossary.md#beginning", False),
        ("docs/none.md", False),
        ("src/os", True),
        ("#here", True),
    ]:
        page = {"README.md": f"# Here\n\n[text]({link})\n"} | others
        assert (list(pages.check_links(Tree(page))) == []) is ok, link


def test_mentioned_paths() -> None:
    for word, ok in [("src/os/fd.h", True), ("src/os/", True), ("src/os/*.h", True), ("src/os/none.h", False)]:
        tree = Tree({"README.md": f"See `{word}`.\n", "src/os/fd.h": ""})
        assert (list(pages.check_mentioned_paths(tree)) == []) is ok, word


def test_mentioned_tests() -> None:
    tree = Tree({"README.md": "`test_yes` and `test_no`\n", "tests/api/test_a.py": "def test_yes() -> None:\n"})
    assert [str(finding) for finding in pages.check_mentioned_tests(tree)] == [
        "README.md:1: there is no test `test_no`"
    ]


@pytest.mark.parametrize(
    ("line", "ok"),
    [
        ("curl http://127.0.0.1:8000/healthz", True),
        ("http://evil.example/", True),
        ("https://" + "files.somewhere.net/x", False),
        ("deb." + "debian.org", False),
        ("py" + "pi.org", False),
    ],
)
def test_hosts(line: str, ok: bool) -> None:
    assert (found(pages.check_hosts, "images/recipe", line) == []) is ok


def test_machine_paths() -> None:
    assert found(pages.check_machine_paths, "README.md", "cd /wo" + "rk/main") != []
    assert found(pages.check_machine_paths, "README.md", "cd ~/work/main; a/work/b") == []


# --- Claims and their proofs ---

PROVED_BY = {
    "tests/escape/test_a.py": "def test_yes(box: Box) -> None:\n    pass\n",
    "src/jail/filter_test.cc": "TEST(Filter, Holds) {\nTEST_F(\n    Long, Name) {\n",
}


@pytest.mark.parametrize(
    ("proof", "ok"),
    [
        ("`tests/escape/test_a.py::test_yes`", True),
        ("`tests/escape/test_a.py::test_no`", False),
        ("`tests/escape/test_a.py::test_ye`", False),
        ("`tests/escape/test_b.py::test_yes`", False),
        ("`jail/filter_test.cc Filter.Holds`", True),
        ("`src/jail/filter_test.cc Filter.Holds`", False),
        ("`jail/filter_test.cc Long.Name`", True),
        ("`jail/filter_test.cc Filter.Leaks`", False),
        ("`wire/filter_test.cc Filter.Holds`", False),
    ],
)
def test_a_proof_that_does_not_exist_is_found(proof: str, ok: bool) -> None:
    tree = Tree(PROVED_BY | {"docs/page.md": f"Nothing gets out: {proof}.\n"})
    assert (list(proofs.check_named_tests(tree)) == []) is ok


def test_a_claim_without_a_proof_is_found() -> None:
    page = (
        "| who | trusted with |\n|---|---|\n| code | nothing |\n\n"
        "| claim | shown by |\n|---|---|\n| one | `tests/a.py::test_a` |\n| two | nobody |\n"
        "| three | `a_test.cc A.B` |\n"
    )
    assert [str(finding) for finding in proofs.check_claims_are_shown(Tree({"docs/security.md": page}))] == [
        "docs/security.md:8: no test shows this: two"
    ]


# --- The program ---


def test_a_planted_wrong_include_fails_the_program(tmp_path: Path) -> None:
    """The whole way: a repository with one wrong include, and the program's exit code."""
    planted = tmp_path / "src/wire/planted.cc"
    planted.parent.mkdir(parents=True)
    (tmp_path / "CMakeLists.txt").write_text("room(wire LINK base)\n")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)

    planted.write_text("#include <string>\n")
    assert run_tidy(tmp_path) == (0, "")
    planted.write_text('#include "http/server.h"\n')
    code, output = run_tidy(tmp_path)
    assert code == 1
    assert output.startswith("src/wire/planted.cc:1: wire may not include")


def run_tidy(root: Path) -> tuple[int, str]:
    done = subprocess.run([sys.executable, str(TIDY), str(root)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_a_header_that_needs_another_is_found(tmp_path: Path) -> None:
    header = tmp_path / "src/wire/planted.h"
    header.parent.mkdir(parents=True)
    header.write_text("// Planted.\n#pragma once\nstd::string f();\n")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    done = subprocess.run(
        [sys.executable, str(TIDY), "--headers", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "src/wire/planted.h:1: not self-contained" in done.stdout
