"""The packages of a stock kernel (wheels.txt), fetched once with pip and kept beside the base image."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

LIST = Path(__file__).with_name("wheels.txt")
CACHE = Path(os.environ.get("CLOISTER_CACHE", "/var/cache/cloister"))
# Of the base image, where they run; not of the host.
TARGET = ["--python-version", "3.13", "--implementation", "cp", "--platform", "manylinux_2_28_x86_64"]
TARGET += ["--platform", "manylinux2014_x86_64", "--only-binary", ":all:"]
FETCH_SECONDS = 600


def wheels() -> list[Path]:
    """The wheels; a folder that exists is whole."""
    folder = CACHE / f"wheels-{hashlib.sha256(LIST.read_bytes()).hexdigest()[:12]}"
    if not folder.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix="wheels-", suffix=".partial", dir=CACHE))
        try:
            download(unfinished)
            unfinished.rename(folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return sorted(folder.glob("*.whl"))


def download(folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", *TARGET]
    command += ["--dest", str(folder), "-r", str(LIST)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"pip could not fetch {LIST.name}: {done.stderr.strip()}")
