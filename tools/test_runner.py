"""Runs the test groups and sums them up; `./dev test` starts it with everything built.

    test_runner.py [GROUP…] [--full]

CLOISTER_BIN names the programs under test, CLOISTER_IMAGE the base image. The last line is exactly
`N passed, N failed`. Exit codes: 0 all passed, 1 something failed or nothing ran.
"""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
GROUPS = ["unit", "api", "escape", "crash", "conformance", "sdk", "e2b"]
ONLY_FULL = re.compile(r"^(\d+) cases only with --full$", re.MULTILINE)
NOT_HERE = re.compile(r"^not here: (.+)$", re.MULTILINE)


@dataclasses.dataclass
class Summary:
    """What one group, or one program of it, came to."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    only_full: int = 0
    not_here: list[str] = dataclasses.field(default_factory=list)  # what this host cannot show, and why

    def add(self, other: Summary) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.only_full += other.only_full
        self.not_here += other.not_here

    def __str__(self) -> str:
        words = f"{self.passed} passed, {self.failed} failed"
        if self.skipped:
            words += f", {self.skipped} skipped"
        if self.only_full:
            words += f" (and {self.only_full} only with --full)"
        return words


def main(arguments: list[str]) -> int:
    full = "--full" in arguments
    groups = [group for group in arguments if group != "--full"] or GROUPS
    total = Summary()
    for group in groups:
        begin = time.monotonic()
        summary = run_group(group, full)
        if summary is None:
            say(f"{group:12} no tests yet")
            continue
        total.add(summary)
        say(f"{group:12} {summary}, {time.monotonic() - begin:.0f} s")
        for why in summary.not_here:
            say(f"{'':12} could not run here: {why}")
    if total.only_full:
        say(f"{total.only_full} cases run only with --full")
    say(f"{total.passed} passed, {total.failed} failed")
    return 0 if total.passed and not total.failed else 1


def run_group(group: str, full: bool) -> Summary | None:
    """None if the group has no tests yet."""
    if group == "unit":
        return run_unit_tests(Path(os.environ["CLOISTER_BIN"]), full)
    folder = REPO / "tests" / group
    if not any(folder.glob("**/test_*.py")):
        return None
    return run_pytest(folder, full)


# ---- unit: one GoogleTest program per room, and the Python tests that lie beside their subject


def run_unit_tests(programs: Path, full: bool) -> Summary | None:
    summary = Summary()
    ran = False
    for program in sorted(programs.glob("*_test")):
        summary.add(run_program(program))
        ran = True
    for folder in python_unit_folders():
        summary.add(run_pytest(folder, full))
        ran = True
    return summary if ran else None


def python_unit_folders() -> Iterator[Path]:
    for room in ("tools", "kernels", "images", "fuzz", "bench"):
        for folder in sorted((REPO / room).rglob("tests")):
            if any(folder.glob("test_*.py")):
                yield folder


def run_program(program: Path) -> Summary:
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        # The names of sources in there may be relative to where the compiler was called.
        compiled_in = program.parent.parent
        ended = run([str(program), f"--gtest_output=xml:{report}", "--gtest_brief=1"], compiled_in)
        return summed_up(program.name, report, ended)


def run_pytest(folder: Path, full: bool) -> Summary:
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider"]
        command += [f"--junitxml={report}", str(folder)]
        # Only tests/ has the conftest that knows the option.
        if full and folder.parent == REPO / "tests":
            command.append("--full")
        ended = run(command)
        summary = summed_up(str(folder.relative_to(REPO)), report, ended)
        left_out = ONLY_FULL.search(ended.stdout)
        summary.only_full = int(left_out.group(1)) if left_out else 0
        summary.not_here = NOT_HERE.findall(ended.stdout)
        return summary


# ---- shared


def run(command: list[str], cwd: Path = REPO) -> subprocess.CompletedProcess[str]:
    """stderr is in stdout, as it came."""
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )


def summed_up(name: str, report: Path, ended: subprocess.CompletedProcess[str]) -> Summary:
    """Counts the cases of a report. A program that ended badly is a failure even if every case it reported passed."""
    summary = count(report)
    nothing_selected = ended.returncode == 5  # pytest: every case there is left for --full
    if ended.returncode not in (0, 5) and summary.failed == 0:
        summary.failed = 1
    if summary.failed:
        say(f"--- {name} (exit code {ended.returncode})")
        say(ended.stdout.rstrip())
        say("---")
    elif not nothing_selected and summary.passed == 0 and summary.skipped == 0:
        summary.failed = 1
        say(f"--- {name} ran no case")
    return summary


def count(report: Path) -> Summary:
    summary = Summary()
    try:
        cases = ElementTree.parse(report).getroot().iter("testcase")
    except (OSError, ElementTree.ParseError):
        return summary
    for case in cases:
        outcomes = {child.tag for child in case}
        if outcomes & {"failure", "error"}:
            summary.failed += 1
        elif "skipped" in outcomes or case.get("result") in ("skipped", "suppressed"):
            summary.skipped += 1
        else:
            summary.passed += 1
    return summary


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
