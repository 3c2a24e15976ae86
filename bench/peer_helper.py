"""Runs in the peer's environment: peer_helper.py warm|first_byte|cells|throughput ARG → figures as JSON."""

from __future__ import annotations

import json
import sys
import threading
import time

from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import start_new_kernel


def run(client: BlockingKernelClient, code: str) -> tuple[float, float, int]:
    """Seconds to the first output and to the end, and the bytes of its streams."""
    begin = time.perf_counter()
    first, size = 0.0, 0
    message_id = client.execute(code)
    while True:
        message = client.get_iopub_msg(timeout=120)
        if message["parent_header"].get("msg_id") != message_id:
            continue
        kind, content = message["msg_type"], message["content"]
        if kind in ("stream", "execute_result"):
            first = first or time.perf_counter() - begin
        if kind == "stream":
            size += len(content["text"])
        if kind == "status" and content["execution_state"] == "idle":
            client.get_shell_msg(timeout=120)
            return first, time.perf_counter() - begin, size


def samples(code: str, count: int) -> dict[str, list[float]]:
    manager, client = start_new_kernel()
    for _ in range(20):
        run(client, code)
    taken = [run(client, code) for _ in range(count)]
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    return {"first_ms": [first * 1000 for first, _, _ in taken], "whole_ms": [whole * 1000 for _, whole, _ in taken]}


def cells(seconds: float) -> dict[str, float]:
    kernels = [start_new_kernel() for _ in range(4)]
    done = [0] * len(kernels)
    for _, client in kernels:
        run(client, "1+1")
    until = time.perf_counter() + seconds

    def work(index: int, client: BlockingKernelClient) -> None:
        while time.perf_counter() < until:
            run(client, "1+1")
            done[index] += 1

    threads = [threading.Thread(target=work, args=(index, client)) for index, (_, client) in enumerate(kernels)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for manager, client in kernels:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return {"per_second": sum(done) / seconds}


def throughput(size: int) -> dict[str, float]:
    manager, client = start_new_kernel()
    run(client, "1")
    block = 1 << 20
    _, seconds, got = run(client, f"import sys\nfor _ in range({size // block}): sys.stdout.write('x' * {block})")
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    return {"mb_per_second": got / seconds / 1e6}


def main(what: str, argument: str) -> dict[str, object]:
    if what == "cells":
        return dict(cells(float(argument)))
    if what == "throughput":
        return dict(throughput(int(argument)))
    code = {"warm": "1+1", "first_byte": "print(1)"}[what]
    return dict(samples(code, int(argument)))


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
