"""first_cell_p50: from the request for a sandbox to the end of its first cell, which imports numpy, pandas and matplotlib.

No sandbox waits ready: what the zygote has imported is forked into one that is made for the request. Beside it, in turns,
the same with an interpreter that is started (its environment names a variable that asks for it).
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from bench_service import BenchService
from rows import Row, percentile

NAME = "first_cell_p50"
GOAL = 4.0
ROUNDS = 40
PLAIN_EACH = 8  # one started interpreter after so many forked ones
PAUSE_SECONDS = 0.05
ZYGOTE_SECONDS = 60
CODE = "import numpy, pandas, matplotlib.pyplot\nprint(1 + 1)"
PLAIN = {"OMP_NUM_THREADS": "2"}


class Caller:
    """One HTTP connection, as an agent keeps it."""

    def __init__(self, service: BenchService) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(service.url).netloc, timeout=120)
        self._headers = {"Authorization": f"Bearer {service.key}", "Content-Type": "application/json"}

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        self._connection.request(method, path, None if body is None else json.dumps(body), self._headers)
        text = self._connection.getresponse().read()
        return json.loads(text) if text else {}


def first_cell(caller: Caller, env: dict[str, str]) -> tuple[str, float, float]:
    """How the interpreter came to life; ms until the sandbox was there, and until its first cell had ended."""
    begin = time.perf_counter()
    sandbox = caller.call("POST", "/v1/sandboxes", {"env": env})["id"]
    made = time.perf_counter()
    run = caller.call("POST", f"/v1/sandboxes/{sandbox}/runs", {"code": CODE})
    end = time.perf_counter()
    caller.call("DELETE", f"/v1/sandboxes/{sandbox}")
    if run["end_reason"] != "ok":
        raise RuntimeError(f"the first cell ended {run['end_reason']}: {run['message']}")
    return run["started_as"], (made - begin) * 1000, (end - begin) * 1000


def wait_for_zygote(caller: Caller) -> None:
    give_up = time.monotonic() + ZYGOTE_SECONDS
    while first_cell(caller, {})[0] != "forked":
        if time.monotonic() > give_up:
            raise TimeoutError(f"no interpreter was forked within {ZYGOTE_SECONDS} s")
        time.sleep(0.5)


def measure(service: BenchService) -> Row:
    caller = Caller(service)
    wait_for_zygote(caller)
    forked, plain, faults = [], [], []
    for round_number in range(ROUNDS):
        time.sleep(PAUSE_SECONDS)
        forked.append(first_cell(caller, {}))
        if round_number % PLAIN_EACH == 0:
            plain.append(first_cell(caller, PLAIN))
    late = sum(way != "forked" for way, _, _ in forked)
    if late:
        faults.append(f"{late} of {ROUNDS} interpreters were started, not forked")
    return Row(
        name=NAME,
        value=percentile([total for _, _, total in forked], 50),
        unit="ms",
        goal=GOAL,
        peer="with an interpreter that is started",
        peer_value=percentile([total for _, _, total in plain], 50),
        detail={
            "the sandbox is there": figures([made for _, made, _ in forked]),
            "its first cell, forked": figures([total - made for _, made, total in forked]),
            "both, forked": figures([total for _, _, total in forked]),
            "both, started": figures([total for _, _, total in plain]),
        },
        faults=faults,
    )


def figures(samples: Sequence[float]) -> dict[str, float]:
    """Untrimmed, in ms."""
    percents = {"min": 0, "p50": 50, "p95": 95, "p99": 99, "max": 100}
    return {name: round(percentile(samples, percent), 2) for name, percent in percents.items()}
