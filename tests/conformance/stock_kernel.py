"""The other side of the comparison: runs inside a sandbox, starts a stock ipykernel with jupyter_client, and
prints what it answered to each cell of cells.json, as JSON.

    python3 stock_kernel.py cells.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager

CELL_SECONDS = 60


def main(path: str) -> None:
    manager = KernelManager()
    manager._kernel_spec = KernelSpec(argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"])
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=CELL_SECONDS)
    try:
        cells = json.loads(Path(path).read_text())
        print(json.dumps([answers(client, cell) for cell in cells]))
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def answers(client: Any, code: str) -> list[dict[str, Any]]:
    """The messages of one cell, in order, without those that only say how far it is."""
    request = client.execute(code, allow_stdin=False)
    seen = []
    while True:
        message = client.get_iopub_msg(timeout=CELL_SECONDS)
        if message["parent_header"].get("msg_id") != request:
            continue
        kind, content = message["msg_type"], message["content"]
        if kind == "status" and content["execution_state"] == "idle":
            break
        if kind not in ("status", "execute_input"):
            seen.append({"type": kind, "content": content})
    reply = reply_to(client, request)
    pages = [page for page in reply.get("payload", []) if page["source"] == "page"]  # what a pager would show: `len?`
    seen += [{"type": "display_data", "content": {"data": page["data"]}} for page in pages]
    seen.append({"type": "reply", "content": {"status": reply["status"]}})
    return seen


def reply_to(client: Any, request: str) -> dict[str, Any]:
    while True:
        message = client.get_shell_msg(timeout=CELL_SECONDS)
        if message["parent_header"].get("msg_id") == request:
            return message["content"]


if __name__ == "__main__":
    main(sys.argv[1])
