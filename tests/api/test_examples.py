"""Every example does what examples/expected.toml says."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli
from service import Service

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
EXPECTED: dict[str, dict[str, Any]] = tomllib.loads((EXAMPLES / "expected.toml").read_text())
PROGRAMS = {path.stem: path for path in EXAMPLES.iterdir() if path.suffix in (".py", ".js", ".ts", ".sh", ".R", ".java")}


def test_every_example_has_its_expectation() -> None:
    assert set(PROGRAMS) == set(EXPECTED)


def test_the_gallery_names_every_example() -> None:
    page = (EXAMPLES / "README.md").read_text()
    assert [name for name in EXPECTED if f"`{PROGRAMS[name].name}`" not in page] == []


def input_of(expected: dict[str, Any]) -> str | None:
    return (EXAMPLES / expected["stdin"]).read_text() if "stdin" in expected else None


def options_of(expected: dict[str, Any]) -> list[str]:
    """The options, with files beside the examples as absolute paths."""
    options = expected.get("options", [])
    return [str(EXAMPLES / word) if (EXAMPLES / word).is_file() else word for word in options]


def cases() -> list[Any]:
    """Those of R and Java need the template that has them."""
    beyond_base = [name for name, path in PROGRAMS.items() if path.suffix in (".R", ".java")]
    return [pytest.param(name, marks=[pytest.mark.polyglot] if name in beyond_base else []) for name in EXPECTED]


@pytest.mark.parametrize("name", cases())
def test_example(name: str, cli: Cli, tmp_path: Path) -> None:
    expected = EXPECTED[name]
    done = cli(
        "run",
        *options_of(expected),
        str(PROGRAMS[name]),
        *expected.get("arguments", []),
        stdin=input_of(expected),
    )
    assert done.stdout == expected["stdout"].lstrip("\n"), done.stderr
    for pattern in expected.get("stderr", []):
        assert re.search(pattern, done.stderr), done.stderr
    assert done.returncode == expected["exit_code"]

    ended = re.search(r"^ended (\w+) in ([\d.]+) s", done.stderr, re.MULTILINE)
    assert ended, done.stderr
    assert ended[1] == expected["end_reason"]
    assert float(ended[2]) <= expected.get("at_most", 30)

    charts = sorted(tmp_path.glob("cloister-out/**/*.png"))
    assert len(charts) == expected.get("charts", 0)
    for chart in charts:
        assert chart.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
        assert str(chart.relative_to(tmp_path)) in done.stderr


def test_the_client_without_packages(server: Service) -> None:
    """The README's example, run outside of the sandbox by an isolated Python: no package can help it."""
    environment = {"CLOISTER_URL": server.url, "CLOISTER_API_KEY": server.key}
    command = [sys.executable, "-I", str(EXAMPLES / "api" / "client.py")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert done.stdout == "adding\nok 45\n", done.stderr


def test_the_readme_shows_what_the_client_does() -> None:
    page = (EXAMPLES.parent / "README.md").read_text()
    shown = EXPECTED["quickstart"]["stdout"].strip()
    assert shown in page
