"""A kernel: its process, and the sockets to it."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import tempfile
from typing import Any

import zmq

from .kernelspec import Kernelspec
from .session import JupyterMessage, Session

_HOST = "127.0.0.1"
_SOCKETS = {"shell": zmq.DEALER, "iopub": zmq.SUB, "stdin": zmq.DEALER, "control": zmq.DEALER}
_PR_SET_PDEATHSIG = 1
_SHUTDOWN_S = 2
_LAST_WORDS_MS = 50
_libc = ctypes.CDLL(None)


class Kernel:
    def __init__(self, spec: Kernelspec) -> None:
        self.spec = spec
        self._folder = tempfile.mkdtemp(prefix="kernel-")
        self._key = secrets.token_hex(32)
        self._session = Session(self._key)
        ports = _free_ports([*_SOCKETS, "hb"])
        self._process = self._start(self._connection_file(ports))
        self._ended = os.pidfd_open(self._process.pid)
        context = zmq.Context.instance()
        self._sockets = {name: context.socket(kind) for name, kind in _SOCKETS.items()}
        for name, channel in self._sockets.items():
            channel.linger = 0
            # A kernel asks for input on one socket under the name that it knows from another.
            if _SOCKETS[name] == zmq.DEALER:
                channel.identity = self._session.identity
            # Nothing that the kernel says may be dropped: the sandbox's memory is the bound.
            channel.rcvhwm = 0
            if name == "iopub":
                channel.subscribe(b"")
            channel.connect(f"tcp://{_HOST}:{ports[name]}")

    def _connection_file(self, ports: dict[str, int]) -> str:
        path = os.path.join(self._folder, "connection.json")
        connection = {"transport": "tcp", "ip": _HOST, "key": self._key, "signature_scheme": "hmac-sha256"}
        connection |= {f"{name}_port": port for name, port in ports.items()}
        connection["kernel_name"] = self.spec.name
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            json.dump(connection, file)
        return path

    def _start(self, connection_file: str) -> subprocess.Popen[bytes]:
        """In a process group of its own: the agent's SIGINT is for us, who know how this kernel wants it."""
        return subprocess.Popen(
            self.spec.command(connection_file),
            env=self.spec.environment(os.environ),
            stdin=subprocess.DEVNULL,
            process_group=0,
            preexec_fn=lambda: _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL),
        )

    # --- Messages ---

    def register(self, poller: zmq.Poller) -> None:
        self._register_sockets(poller)
        poller.register(self._ended, zmq.POLLIN)

    def _register_sockets(self, poller: zmq.Poller) -> None:
        for name in ("iopub", "shell", "stdin"):
            poller.register(self._sockets[name], zmq.POLLIN)

    def has_said_more(self) -> bool:
        """Whether a kernel that has ended left messages, which may still be on their way."""
        poller = zmq.Poller()
        self._register_sockets(poller)
        return bool(poller.poll(_LAST_WORDS_MS))

    def send(self, name: str, msg_type: str, content: dict[str, Any], parent: dict[str, Any] | None = None) -> str:
        """Answers the new message's id."""
        msg_id, frames = self._session.frames(msg_type, content, parent)
        self._sockets[name].send_multipart(frames)
        return msg_id

    def receive(self, name: str) -> JupyterMessage | None:
        """The next message that is there; what is none of the conversation's is passed over."""
        while True:
            try:
                frames = self._sockets[name].recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return None
            if (message := self._session.message(frames)) is not None:
                return message

    # --- Life ---

    @property
    def pid(self) -> int:
        return self._process.pid

    def cwd(self) -> str:
        """Where it is now; empty if that cannot be said."""
        try:
            return os.readlink(f"/proc/{self.pid}/cwd")
        except OSError:
            return ""

    def interrupt(self) -> None:
        if self.spec.interrupt_mode == "message":
            self.send("control", "interrupt_request", {})
        else:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGINT)

    def end_status(self) -> int | None:
        """None while it lives; an exit code, or the negative number of the signal that ended it."""
        return self._process.poll()

    def shut_down(self) -> int:
        """Asks it to end, and ends it; answers its end_status."""
        self.send("control", "shutdown_request", {"restart": False})
        select.select([self._ended], [], [], _SHUTDOWN_S)
        if self._process.poll() is None:
            self._process.kill()
        return self._process.wait()

    def clear_away(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def _free_ports(names: list[str]) -> dict[str, int]:
    """Ports of loopback that nobody has now; the kernel binds them a moment later, as Jupyter has it."""
    with contextlib.ExitStack() as stack:
        probes = {name: stack.enter_context(socket.socket()) for name in names}
        for probe in probes.values():
            probe.bind((_HOST, 0))
        return {name: probe.getsockname()[1] for name, probe in probes.items()}
