"""The peer of what runs code: a stock ipykernel, driven by jupyter_client in this process's stead by a helper of the
peer's own interpreter. It is installed into an environment of its own in the cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PACKAGES = ("ipykernel==6.29.5", "jupyter_client==8.6.3")
HELPER = Path(__file__).with_name("peer_helper.py")


def python() -> str:
    """The interpreter of the environment, made at its first use."""
    place = Path(os.environ.get("CLOISTER_CACHE", "/var/cache/cloister")) / "bench-peer"
    done = place / ".packages"
    if not done.exists() or done.read_text() != "\n".join(PACKAGES):
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
        subprocess.run([str(place / "bin/pip"), "install", "--quiet", *PACKAGES], check=True)
        done.write_text("\n".join(PACKAGES))
    return str(place / "bin/python")


def measure(what: str, *words: str) -> dict[str, Any]:
    """What peer_helper.py answers."""
    done = subprocess.run([python(), "-P", str(HELPER), what, *words], capture_output=True, text=True, check=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures
