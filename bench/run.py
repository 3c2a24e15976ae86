"""Measures the release build and writes bench/results/latest.json; `./dev bench` starts it with everything built.

    run.py [ROW…]      all rows, or those named

CLOISTER_BIN names the programs, CLOISTER_IMAGE the base image. A row is a module of this folder (or a class in one) with NAME, and
measure(service) that answers a Row; add it to MODULES. Exit codes: 0 every goal met, 1 one is not, 2 wrong usage.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO / "tests"))

import files  # noqa: E402
import first_cell  # noqa: E402
import life  # noqa: E402
import neighbour  # noqa: E402
import stdout  # noqa: E402
import warm  # noqa: E402
from bench_service import BenchService  # noqa: E402
from rows import Row  # noqa: E402

MODULES = {
    module.NAME: module
    for module in (
        neighbour, first_cell, life.PoolHit, life.Pause, warm.Warm, warm.FirstByte, warm.Cells, stdout,
        files.Download, files.Upload,
    )  # fmt: skip
}
RESULTS = REPO / "bench" / "results" / "latest.json"


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in MODULES]
    if unknown:
        print(f"there is no row {unknown[0]!r}; known: {' '.join(MODULES)}", file=sys.stderr)
        return 2
    rows = []
    with BenchService() as service:
        for name in names or MODULES:
            rows.append(MODULES[name].measure(service))
            show(rows[-1])
    save(rows)
    return 0 if all(row.met for row in rows) else 1


def show(row: Row) -> None:
    print(row)
    for name, figures in row.detail.items():
        print(f"  {name:24} " + "  ".join(f"{what} {value:g}" for what, value in figures.items()))
    for fault in row.faults:
        print(f"  {fault}")


def save(rows: list[Row]) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    text = json.dumps({"measured": facts(), "rows": [row.as_json() for row in rows]}, indent=2)
    RESULTS.write_text(text + "\n")
    print(f"written to {RESULTS.relative_to(REPO)}")


def facts() -> dict[str, object]:
    """Where and when: a figure without them means nothing."""
    commit = subprocess.run(["git", "-C", str(REPO), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": commit.stdout.strip() or None,
        "kernel": platform.release(),
        "cpus": os.cpu_count(),
        "load": os.getloadavg()[0],
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
