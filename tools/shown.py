"""Runs what an issue must show: each line of tests/shown/NAME.toml, with a verdict per line.

    [[line]]
    says = "the sandbox has its own identity"     # the sentence of the issue
    run = "./dev run -c 'print(1)'"               # bash, in the repository's folder
    expect = ["^1$"]                              # regular expressions; each must match the output
    exit = 0                                      # the exit code (default 0)
    timeout = 60                                  # seconds (default 60)
    full = true                                   # only with --full (default false)

The last line is exactly `N passed, N failed`. Exit codes: 0 all passed, 1 something failed or
nothing ran, 2 there is no such file, or a line in it is malformed.
"""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
FOLDER = REPO / "tests" / "shown"


@dataclasses.dataclass(frozen=True)
class Line:
    says: str
    run: str
    expect: list[str] = dataclasses.field(default_factory=list)
    exit: int = 0
    timeout: float = 60
    full: bool = False


def main(arguments: list[str]) -> int:
    names = [name for name in arguments if name != "--full"]
    known = sorted(path.stem for path in FOLDER.glob("*.toml"))
    if len(names) != 1 or names[0] not in known:
        print(f"usage: ./dev shown NAME [--full]; NAME is one of: {' '.join(known) or '(none yet)'}", file=sys.stderr)
        return 2
    try:
        lines = read_lines(FOLDER / f"{names[0]}.toml")
    except (TypeError, ValueError, KeyError) as error:
        print(f"{names[0]}.toml: {error}", file=sys.stderr)
        return 2
    return show(lines, full="--full" in arguments)


def read_lines(path: Path) -> list[Line]:
    """A key that a line does not know is an error: a misspelt `expect` would check nothing."""
    return [Line(**fields) for fields in tomllib.loads(path.read_text())["line"]]


def show(lines: list[Line], *, full: bool) -> int:
    passed = failed = 0
    for line in lines:
        if line.full and not full:
            print(f"later   {line.says} (only with --full)")
            continue
        begin = time.monotonic()
        fault, output = judge(line)
        verdict = "FAILED" if fault else "ok"
        print(f"{verdict:7} {line.says} ({time.monotonic() - begin:.1f} s)", flush=True)
        if fault:
            failed += 1
            print(f"        $ {line.run.strip()}\n        {fault}; the output was:")
            print("".join(f"        | {text}\n" for text in output.splitlines()[-30:]), end="")
        else:
            passed += 1
    print(f"{passed} passed, {failed} failed")
    return 0 if passed and not failed else 1


def judge(line: Line) -> tuple[str, str]:
    """What is wrong (empty if nothing), and the output."""
    process = subprocess.Popen(
        ["bash", "-c", line.run],
        cwd=REPO,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=line.timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return f"it did not end within {line.timeout:g} s", output
    if process.returncode != line.exit:
        return f"the exit code is {process.returncode}, not {line.exit}", output
    for pattern in line.expect:
        if not re.search(pattern, output, re.MULTILINE):
            return f"nothing matches {pattern!r}", output
    return "", output


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
