"""Rows `warm`, `first_byte` and `cells`: what a small run costs when its interpreter is there already."""

from __future__ import annotations

import json
import multiprocessing
import time

import peer
from bench_service import BenchService
from rows import Row, percentile
from wire import Wire

WARM_UP = 200
SAMPLES = 2000
PEER_SAMPLES = 300
CELLS_SECONDS = 4.0
SSE = "text/event-stream"


def runs_of_new_sandbox(service: BenchService) -> str:
    answer = service.client.post("/v1/sandboxes", json={})
    answer.raise_for_status()
    return f"/v1/sandboxes/{answer.json()['id']}/runs"


def delete_sandbox(service: BenchService, runs: str) -> None:
    service.client.delete(runs.removesuffix("/runs")).raise_for_status()


class Warm:
    NAME = "warm"

    @staticmethod
    def measure(service: BenchService) -> Row:
        """`1+1`, from the first byte of the request to the last of the answer."""
        runs = runs_of_new_sandbox(service)
        wire = Wire(service.url, service.key)
        request = wire.post(runs, {"code": "1+1"})
        assert json.loads(wire.ask(request))["results"][0]["data"]["text/plain"] == "2"
        taken = []
        for sample in range(WARM_UP + SAMPLES):
            begin = time.perf_counter()
            wire.ask(request)
            if sample >= WARM_UP:
                taken.append((time.perf_counter() - begin) * 1000)
        wire.close()
        delete_sandbox(service, runs)
        beside = peer.measure("warm", str(PEER_SAMPLES))["whole_ms"]
        value, theirs = percentile(taken, 50), percentile(beside, 50)
        faults = []
        if percentile(taken, 99) > 1.0:
            faults.append(f"p99 is {percentile(taken, 99):.2f} ms; its goal is 1.0 ms")
        if theirs / value < 25:
            faults.append(f"only {theirs / value:.1f} times as fast as ipykernel; the goal is 25")
        return Row(
            name="warm", value=value, unit="ms", goal=0.15, peer="ipykernel", peer_value=theirs,
            detail={"ours": figures(taken), "ipykernel": figures(beside)}, faults=faults,
        )  # fmt: skip


class FirstByte:
    NAME = "first_byte"

    @staticmethod
    def measure(service: BenchService) -> Row:
        """`print(1)` over server-sent events: from the request to the event with the output."""
        runs = runs_of_new_sandbox(service)
        wire = Wire(service.url, service.key)
        request = wire.post(runs, {"code": "print(1)"}, SSE)
        taken = []
        for sample in range(WARM_UP + SAMPLES):
            begin, first, got = time.perf_counter(), 0.0, b""
            for piece in wire.pieces(request):
                got += bytes(piece)
                if not first and b"event: stdout" in got:
                    first = time.perf_counter() - begin
            if sample >= WARM_UP:
                taken.append(first * 1000)
        wire.close()
        delete_sandbox(service, runs)
        beside = peer.measure("first_byte", str(PEER_SAMPLES))["first_ms"]
        return Row(
            name="first_byte", value=percentile(taken, 50), unit="ms", goal=0.3,
            peer="ipykernel", peer_value=percentile(beside, 50),
            detail={"ours": figures(taken), "ipykernel": figures(beside)},
        )  # fmt: skip


class Cells:
    NAME = "cells"

    @staticmethod
    def measure(service: BenchService) -> Row:
        """`1+1` as often as it goes, on four kernels at the same time, each with a client of its own."""
        boxes = [runs_of_new_sandbox(service) for _ in range(4)]
        with multiprocessing.get_context("fork").Pool(len(boxes)) as pool:
            counts = pool.starmap(count_cells, [(service.url, service.key, runs) for runs in boxes])
        for runs in boxes:
            delete_sandbox(service, runs)
        rate = sum(counts) / CELLS_SECONDS
        theirs = peer.measure("cells", str(CELLS_SECONDS))["per_second"]
        return Row(
            name="cells", value=rate, unit="/s", goal=25 * theirs, peer="ipykernel", peer_value=theirs,
            more_is_better=True,
        )  # fmt: skip


def count_cells(url: str, key: str, runs: str) -> int:
    wire = Wire(url, key)
    request = wire.post(runs, {"code": "1+1"})
    for _ in range(WARM_UP):
        wire.ask(request)
    until, count = time.perf_counter() + CELLS_SECONDS, 0
    while time.perf_counter() < until:
        wire.ask(request)
        count += 1
    wire.close()
    return count


def figures(samples: list[float]) -> dict[str, float]:
    return {f"p{percent}": percentile(samples, percent) for percent in (50, 90, 99)}
