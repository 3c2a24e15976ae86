"""Row `stdout`: how fast what a program writes reaches a client over server-sent events, and what a reader that is slow
costs the server in memory."""

from __future__ import annotations

import time
from pathlib import Path

import peer
from bench_service import BenchService
from rows import Row
from warm import SSE, delete_sandbox, runs_of_new_sandbox
from wire import Wire

NAME = "stdout"
SIZE = 240 << 20  # below the limit of a run
SLOW_SIZE = 64 << 20
SLOW_GROWTH_MAX = 16 << 20
PEER_SIZE = 64 << 20

FLOOD = """
import os
block = (b"x" * 127 + b"\\n") * 8192
for _ in range({size} // len(block)):
    view = memoryview(block)
    while view:
        view = view[os.write(1, view):]
"""


def measure(service: BenchService) -> Row:
    runs = runs_of_new_sandbox(service)
    wire = Wire(service.url, service.key)
    flood(wire, runs, 16 << 20)
    rates = [flood(wire, runs, SIZE) for _ in range(3)]
    growth = slow_reader_growth(service, runs)
    wire.close()
    delete_sandbox(service, runs)
    faults = []
    if growth > SLOW_GROWTH_MAX:
        faults.append(f"the server grew by {growth >> 20} MiB while a reader slept")
    theirs = peer.measure("throughput", str(PEER_SIZE))["mb_per_second"]
    return Row(
        name=NAME, value=sorted(rates)[1], unit="MB/s", goal=300, peer="ipykernel", peer_value=theirs,
        detail={"ours": {f"run {i}": rate for i, rate in enumerate(rates)}}, faults=faults, more_is_better=True,
    )  # fmt: skip


def flood(wire: Wire, runs: str, size: int) -> float:
    """MB of output a second, from the first of it to the last."""
    request = wire.post(runs, {"code": FLOOD.format(size=size)}, SSE)
    begin, got = 0.0, 0
    for piece in wire.pieces(request):
        begin = begin or time.perf_counter()
        got += len(piece)
    if got < size:
        raise RuntimeError(f"only {got} of {size} bytes came")
    return size / (time.perf_counter() - begin) / 1e6


def slow_reader_growth(service: BenchService, runs: str) -> int:
    wire = Wire(service.url, service.key)
    before = most = resident(service.program("cloisterd").pid)
    got = 0
    for piece in wire.pieces(wire.post(runs, {"code": FLOOD.format(size=SLOW_SIZE)}, SSE)):
        got += len(piece)
        if got < SLOW_SIZE // 8:
            time.sleep(0.05)
            most = max(most, resident(service.program("cloisterd").pid))
    wire.close()
    return most - before


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
