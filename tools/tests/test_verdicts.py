"""The programs that say whether something passed must not say so too easily."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOOLS))

import shown  # noqa: E402
import test_runner  # noqa: E402


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (shown.Line("", "echo yes", ["^yes$"]), ""),
        (shown.Line("", "echo yes; exit 3", ["^yes$"], exit=3), ""),
        (shown.Line("", "echo yes; exit 3", ["^yes$"]), "the exit code is 3, not 0"),
        (shown.Line("", "echo yesterday", ["^yes$"]), "nothing matches '^yes$'"),
        (shown.Line("", "echo yes; echo no >&2", ["yes", "^no$"]), ""),
        (shown.Line("", "sleep 9 & sleep 9", timeout=0.2), "it did not end within 0.2 s"),
    ],
)
def test_line_is_judged_by_code_output_and_time(line: shown.Line, fault: str) -> None:
    assert shown.judge(line)[0] == fault


def test_misspelt_key_of_a_line_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text('[[line]]\nsays = "x"\nrun = "true"\nexpects = ["never"]\n')
    with pytest.raises(TypeError, match="expects"):
        shown.read_lines(path)


def run_case(tmp_path: Path, body: str) -> test_runner.Summary:
    (tmp_path / "test_case.py").write_text(body)
    report = tmp_path / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return test_runner.summed_up("case", report, ended)


def test_what_could_not_run_is_told() -> None:
    output = "....\n3 cases only with --full\nnot here: io.max: no cgroup v2\nnot here: R19: an old kernel\n4 passed\n"
    assert test_runner.NOT_HERE.findall(output) == ["io.max: no cgroup v2", "R19: an old kernel"]
    total = test_runner.Summary()
    total.add(test_runner.Summary(passed=1, not_here=["a"]))
    total.add(test_runner.Summary(passed=1, not_here=["b"]))
    assert total.not_here == ["a", "b"]


def test_every_outcome_is_counted(tmp_path: Path) -> None:
    summary = run_case(
        tmp_path,
        "import pytest\n"
        "def test_a(): pass\n"
        "def test_b(): assert False\n"
        "def test_c(): pytest.skip('x')\n"
        "@pytest.fixture\ndef broken(): raise OSError\n"
        "def test_d(broken): pass\n",
    )
    assert (summary.passed, summary.failed, summary.skipped) == (1, 2, 1)


@pytest.mark.parametrize("body", ["import nothing_of_this_name\n", "import os\ndef test_a(): os._exit(0)\n"])
def test_a_program_that_reports_no_case_has_failed(tmp_path: Path, body: str) -> None:
    summary = run_case(tmp_path, body)
    assert summary.passed == 0
    assert summary.failed > 0
