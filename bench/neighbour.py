"""neighbour_p99_ratio: how much longer a small cell takes in sandbox B while sandbox A of another project attacks.

Quiet and loud phases take turns, so that whatever else the machine does falls on both. A cell is sent every few
milliseconds over one HTTP connection, and the worst attack counts.
"""

from __future__ import annotations

import dataclasses
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from attacks import Attacked
from bench_service import BenchService
from rows import Row, percentile

NAME = "neighbour_p99_ratio"
GOAL = 2.0
QUIET_SECONDS = 4.0
LOUD_SECONDS = 8.0
SETTLE_SECONDS = 1.0
PAUSE_SECONDS = 0.01
LOOP_TIMEOUT_MS = 3000


@dataclasses.dataclass(frozen=True)
class Attack:
    """`run` attacks once and answers the ended run; it is repeated as long as the neighbour is measured."""

    name: str
    reason: str
    run: Callable[[Attacked], dict[str, Any]]
    size: dict[str, int] = dataclasses.field(default_factory=dict)
    program: str = ""  # brought into the sandbox before


def looping(kind: str) -> Callable[[Attacked], dict[str, Any]]:
    return lambda box: box.cell("stubborn", kind, timeout_ms=LOOP_TIMEOUT_MS)


ATTACKS = [
    Attack("memory bomb", "oom", lambda box: box.cell("memory_bomb"), {"memory_mb": 1024}),
    Attack("fork bomb", "pids_limit", lambda box: box.run(_START_FORK_BOMB), program="fork_bomb"),
    Attack("disk filler", "disk_full", lambda box: box.cell("fill", "/home/user"), {"disk_mb": 1024}),
    Attack("loop in C", "timeout", looping("in C")),
    Attack("loop that ignores SIGINT", "timeout", looping("blocks")),
    Attack("cpu hog", "ok", lambda box: box.cell("cpu_hog")),
]
_START_FORK_BOMB = """
import subprocess, sys
sys.exit(subprocess.run(["/home/user/fork_bomb"], stderr=subprocess.DEVNULL).returncode)
"""


class Neighbour:
    """Sandbox B, asked over one connection that stays open while it is measured."""

    def __init__(self, service: BenchService) -> None:
        self._http = http.client.HTTPConnection(urlsplit(service.url).netloc, timeout=60)
        self._headers = {"Authorization": f"Bearer {service.second_key}", "Content-Type": "application/json"}
        self.id: str = self._post("/v1/sandboxes", {})["id"]
        self.cell()

    def cell(self) -> float:
        """The seconds that `1+1` takes."""
        begin = time.perf_counter()
        done = self._post(f"/v1/sandboxes/{self.id}/runs", {"code": "1+1"})
        seconds = time.perf_counter() - begin
        if done["end_reason"] != "ok":
            raise AssertionError(f"the neighbour was harmed: {done}")
        return seconds

    def cells(self, seconds: float) -> list[float]:
        samples = []
        self._http.close()  # it was idle while the last attack came to its end: the next call connects anew
        self.cell()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            samples.append(self.cell())
            time.sleep(PAUSE_SECONDS)
        return samples

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self._http.request("POST", path, json.dumps(body), self._headers)
        answer: dict[str, Any] = json.loads(self._http.getresponse().read())
        return answer


@contextmanager
def under_attack(service: BenchService, attack: Attack) -> Iterator[list[str]]:
    """Attacks over and over in a sandbox of its own; the list gets the end reasons."""
    box = Attacked(service.client, **attack.size)
    if attack.program:
        box.bring(attack.program)
    reasons: list[str] = []
    over = threading.Event()

    def attack_on() -> None:
        while not over.is_set():
            reasons.append(attack.run(box)["end_reason"])

    thread = threading.Thread(target=attack_on)
    thread.start()
    try:
        time.sleep(SETTLE_SECONDS)
        yield reasons
    finally:
        over.set()
        thread.join()
        box.delete()


def measure(service: BenchService) -> Row:
    neighbour = Neighbour(service)
    quiet = neighbour.cells(QUIET_SECONDS)
    loud: dict[str, list[float]] = {}
    faults = []
    for attack in ATTACKS:
        with under_attack(service, attack) as reasons:
            loud[attack.name] = neighbour.cells(LOUD_SECONDS)
        if set(reasons) != {attack.reason}:
            faults.append(f"{attack.name} ended {sorted(set(reasons))}, not {attack.reason}")
        time.sleep(SETTLE_SECONDS)
        quiet += neighbour.cells(QUIET_SECONDS)
    return judge(quiet, loud, faults)


def judge(quiet: list[float], loud: dict[str, list[float]], faults: list[str]) -> Row:
    still = percentile(quiet, 99)
    ratios = {name: percentile(samples, 99) / still for name, samples in loud.items()}
    detail = {name: figures(samples) | {"ratio": round(ratios[name], 2)} for name, samples in loud.items()}
    detail["no attack"] = figures(quiet)
    return Row(NAME, round(max(ratios.values()), 2), "x", GOAL, "without an attack", 1.0, detail, faults)


def figures(samples: list[float]) -> dict[str, float]:
    return {
        "cells": len(samples),
        "p50_ms": round(percentile(samples, 50) * 1000, 3),
        "p99_ms": round(percentile(samples, 99) * 1000, 3),
        "max_ms": round(max(samples) * 1000, 3),
    }
