"""Each fuzzer holds on its seeds, and on some thousand changes of them; `./dev fuzz` looks further."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

FUZZ = Path(__file__).resolve().parent.parent
NAMES = sorted(source.stem for source in FUZZ.glob("*.cc"))
RUNS = 5000


def test_every_fuzzer_has_seeds() -> None:
    assert NAMES == sorted(folder.name for folder in (FUZZ / "corpus").iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_seeds(name: str, tmp_path: Path) -> None:
    """The same seed of randomness each time: a failure can be had again."""
    program = Path(os.environ["CLOISTER_BIN"]) / f"fuzz_{name}"
    options = [f"-runs={RUNS}", "-seed=1", "-timeout=10", f"-artifact_prefix={tmp_path}/"]
    command = [str(program), *options, str(tmp_path), str(FUZZ / "corpus" / name)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120)
    assert done.returncode == 0, done.stderr[-4000:]
