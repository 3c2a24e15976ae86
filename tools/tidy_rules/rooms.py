"""Which room may know which: docs/../ARCHITECTURE.md draws these arrows, this table holds them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree import Finding, Tree

# What a room may include beside itself and the standard library.
ARROWS: dict[str, set[str]] = {
    "base": set(),
    "os": {"base"},
    "wire": {"base"},
    "loop": {"base", "os"},
    "http": {"base", "os", "loop"},
    "store": {"base", "os"},
    "jail": {"base", "os", "wire"},
    "egress": {"base", "wire"},
    "engine": {"base", "os", "wire", "loop", "store", "egress"},
    "ops": {"base", "os", "wire", "loop", "store", "egress", "engine"},
    "faces/rest": {"base", "os", "wire", "loop", "http", "egress", "engine", "ops"},
    "programs/agent": {"base", "os", "wire"},
    "programs/cli": {"base", "os", "wire", "loop", "http"},
    "programs/egressd": {"base", "os", "wire", "loop", "egress"},
    "programs/reaper": {"base", "os", "wire", "jail"},
    "programs/server": {"base", "os", "wire", "loop", "http", "store", "egress", "engine", "ops", "faces/rest"},
    "programs/shell": {"base", "os", "wire"},
    "programs/sudo": {"base", "os", "wire"},
    "programs/warden": {"base", "os", "wire", "jail"},
    "programs/zygote": {"base", "os", "wire"},
}

# Libraries that only some rooms may name, so that the rest of the code does not depend on them.
LIBRARIES: list[tuple[str, set[str]]] = [
    # http builds on Beast, whose streams are Asio's; everyone else sees Task, Signal and UnixStream.
    (r"<boost/asio", {"loop", "http"}),
    (r"<boost/beast", {"http"}),
    (r"<sqlite3", {"store"}),
    (r"<zlib", {"http"}),
    (r"<seccomp", {"jail"}),
    (r"<CLI/", {"programs/cli", "programs/egressd", "programs/server", "programs/warden"}),
    (r"<toml\+\+", {"programs/cli"}),
    # The kernel's own interface. The warden, the reaper, the zygote, the agent and the shell's driver are
    # programs about processes: they wait, clone and signal; all else goes through os.
    (
        r"<(sys|linux)/",
        {"os", "jail", *(f"programs/{name}" for name in ("warden", "reaper", "zygote", "agent", "shell"))},
    ),
]

_RAW_SYSCALL = re.compile(r"(?<![\w.>])(?:::)?syscall\s*\(")


def room_of(path: str) -> str:
    """ "src/faces/rest/router.cc" is in room "faces/rest"."""
    parts = path.split("/")[1:-1]
    return "/".join(parts[:2]) if parts and parts[0] in ("faces", "programs") else parts[0] if parts else ""


def check_arrows(tree: Tree) -> Iterator[Finding]:
    """A room includes only the rooms that its arrows lead to."""
    for path, source in tree.sources():
        room = room_of(path)
        if room not in ARROWS:
            yield Finding(path, 1, f"room `{room}` has no arrows: add it to tools/tidy_rules/rooms.py")
            continue
        for line, name in source.includes:
            target = room_of("src/" + name.strip('"')) if name.startswith('"') else room
            if target != room and target not in ARROWS[room]:
                allowed = ", ".join(sorted(ARROWS[room])) or "nothing"
                yield Finding(path, line, f"{room} may not include {name}: its arrows lead to {allowed}")


def check_libraries(tree: Tree) -> Iterator[Finding]:
    """A library with a room of its own is named in that room only."""
    for path, source in tree.sources():
        for line, name in source.includes:
            for pattern, rooms in LIBRARIES:
                if re.match(pattern, name) and room_of(path) not in rooms:
                    yield Finding(path, line, f"{name} is for {', '.join(sorted(rooms))} only")


def check_asio_names(tree: Tree) -> Iterator[Finding]:
    """Nothing but loop and http says `asio::`."""
    for path, source in tree.sources():
        if room_of(path) not in ("loop", "http"):
            for match in re.finditer(r"\basio::", source.code):
                yield Finding(path, source.line_at(match.start()), "asio is named in loop and http only")


def check_raw_syscalls(tree: Tree) -> Iterator[Finding]:
    """Raw system calls are in os and jail."""
    for path, source in tree.sources():
        if room_of(path) not in ("os", "jail") and not path.endswith("_test.cc"):
            for match in _RAW_SYSCALL.finditer(source.code):
                yield Finding(path, source.line_at(match.start()), "a raw system call belongs into src/os")


CHECKS = [check_arrows, check_libraries, check_asio_names, check_raw_syscalls]
