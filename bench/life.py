"""pool_hit_p50: from the request for a sandbox to the end of its first cell, when one waits ready (first_cell_p50 is the same
without). pause_p50: pause and resume of a sandbox whose interpreter has pandas in use, by the API, in memory.
"""

from __future__ import annotations

import time
from typing import Any

from bench_service import BenchService
from first_cell import CODE, Caller, figures, wait_for_zygote
from rows import Row, percentile

ROUNDS = 40
FILL_SECONDS = 60


class PoolHit:
    NAME = "pool_hit_p50"

    @staticmethod
    def measure(_: BenchService) -> Row:
        own = BenchService()
        own.options = []  # with the pool that a service has
        with own:
            return _pool_hit(Caller(own))


def _pool_hit(caller: Caller) -> Row:
    wait_for_zygote(caller)
    hits, faults = [], []
    for _ in range(ROUNDS):
        _wait_until_full(caller)
        before = _warm(caller)["hits"]
        begin = time.perf_counter()
        sandbox = caller.call("POST", "/v1/sandboxes", {})["id"]
        made = time.perf_counter()
        run = caller.call("POST", f"/v1/sandboxes/{sandbox}/runs", {"code": CODE})
        end = time.perf_counter()
        caller.call("DELETE", f"/v1/sandboxes/{sandbox}")
        if run["end_reason"] != "ok" or _warm(caller)["hits"] != before + 1:
            faults.append(f"{run['end_reason']}, or not one of the pool")
        hits.append(((made - begin) * 1000, (end - begin) * 1000))
    return Row(
        name=PoolHit.NAME,
        value=percentile([total for _, total in hits], 50),
        unit="ms",
        goal=0.5,
        detail={
            "the sandbox is there": figures([made for made, _ in hits]),
            "its first cell": figures([total - made for made, total in hits]),
            "both": figures([total for _, total in hits]),
            "memory of a warm one, MB": {"each": round(_warm(caller)["memory_bytes"] / max(_warm(caller)["ready"], 1) / 1e6, 1)},
        },
        faults=sorted(set(faults)),
    )


def _warm(caller: Caller) -> dict[str, Any]:
    return caller.call("GET", "/v1/status")["warm"]


def _wait_until_full(caller: Caller) -> None:
    give_up = time.monotonic() + FILL_SECONDS
    while (warm := _warm(caller))["ready"] < warm["target"]:
        if time.monotonic() > give_up:
            raise TimeoutError(f"the pool is not full within {FILL_SECONDS} s: {warm}")
        time.sleep(0.01)


class Pause:
    NAME = "pause_p50"

    @staticmethod
    def measure(service: BenchService) -> Row:
        caller = Caller(service)
        sandbox = caller.call("POST", "/v1/sandboxes", {})["id"]
        path = f"/v1/sandboxes/{sandbox}"
        caller.call("POST", path + "/runs", {"code": "import pandas as pd\nframe = pd.DataFrame({'a': range(100_000)})"})
        pauses, resumes, cells, faults = [], [], [], set()
        for _ in range(ROUNDS):
            times = [time.perf_counter()]
            for call, body in (("pause", {}), ("resume", {}), ("pause", {}), ("runs", {"code": "1 + 1"})):
                answer = caller.call("POST", f"{path}/{call}", body)
                times.append(time.perf_counter())
                if answer.get("state") not in ("paused", "running", "ended"):
                    faults.add(f"{call}: {answer}")
            spent = [(end - begin) * 1000 for begin, end in zip(times, times[1:], strict=False)]
            pauses += [spent[0], spent[2]]
            resumes.append(spent[1])
            cells.append(spent[3])
        caller.call("DELETE", path)
        return Row(
            name=Pause.NAME,
            value=percentile(pauses, 50),
            unit="ms",
            goal=1.0,
            detail={"pause": figures(pauses), "resume": figures(resumes), "a cell that resumes it": figures(cells)},
            faults=sorted(faults),
        )
