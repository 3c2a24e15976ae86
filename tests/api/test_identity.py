"""What code sees of itself and of the machine: its own sandbox, and nothing of the host."""

from __future__ import annotations

import json
import os
import socket
from typing import Any

import httpx
import pytest
from conftest import Run, create_sandbox


def ask(run: Run, expression: str, imports: str = "os") -> Any:
    """The value of an expression inside the sandbox."""
    done = run(f"import json, {imports}\nprint(json.dumps({expression}))")
    assert done["end_reason"] == "ok", done
    return json.loads(done["stdout"]["text"])


def status_fields(run: Run) -> dict[str, str]:
    lines = ask(run, "open('/proc/self/status').read()").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_who_it_is(run: Run, sandbox: dict[str, Any]) -> None:
    assert ask(run, "[os.getuid(), os.geteuid(), os.getgid(), os.getgroups()]") == [1000, 1000, 1000, []] or ask(
        run, "os.getgroups()"
    ) == [1000]
    assert ask(run, "os.getpid()") < 100
    assert ask(run, "[open('/etc/hostname').read().strip(), os.uname().nodename]") == [sandbox["id"]] * 2
    assert ask(run, "[os.getcwd(), os.environ['HOME'], os.environ['USER']]") == ["/home/user", "/home/user", "user"]


def test_no_privilege(run: Run) -> None:
    fields = status_fields(run)
    sets = {name: int(fields[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
    assert sets == dict.fromkeys(sets, 0)
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")
    assert int(fields["Seccomp_filters"]) >= 2, "the base filter and the final one"


def test_user_ids_are_not_the_hosts(run: Run) -> None:
    maps = ask(run, "open('/proc/self/uid_map').read()")
    inside = {int(line.split()[0]): int(line.split()[2]) for line in maps.splitlines()}
    assert inside == {0: 4096, 65533: 3}


def test_only_its_own_processes(run: Run) -> None:
    commands = ask(run, "[open(f'/proc/{p}/cmdline').read() for p in os.listdir('/proc') if p.isdigit()]")
    assert len(commands) <= 4, commands
    assert not [command for command in commands if "cloisterd" in command or "warden" in command]


def test_only_loopback(run: Run) -> None:
    assert ask(run, "[name for _, name in socket.if_nameindex()]", "socket") == ["lo"]
    assert ask(run, "open('/proc/net/route').read().count(chr(10))") <= 1
    code = "s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname(), 2); print('up')"
    assert run(f"import socket\n{code}")["stdout"]["text"] == "up\n"


def test_no_way_out(run: Run, server: Any) -> None:
    port = int(server.url.rpartition(":")[2])
    code = f"""
import socket
for address in [("1.1.1.1", 53), ("127.0.0.1", {port}), ("10.0.0.1", 80)]:
    try:
        socket.create_connection(address, 3)
        print("connected to", address)
    except OSError as error:
        print("no:", error.errno)
"""
    lines = run(code)["stdout"]["text"].splitlines()
    assert len(lines) == 3
    assert all(line.startswith("no:") for line in lines), lines


def test_no_abstract_socket_of_the_host(run: Run) -> None:
    name = f"cloister-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("\0" + name)
        listener.listen()
        connect = f"socket.socket(socket.AF_UNIX).connect('\\0{name}')"
        code = f"import socket\ntry: {connect}\nexcept OSError as error: print(error.errno)"
        assert run(code)["stdout"]["text"].strip() in ("111", "1")


def test_no_file_of_the_host(run: Run, server: Any) -> None:
    seen = ask(run, f"[p for p in ['{server.data}', '{server.build.bin}', '/sys/kernel'] if os.path.exists(p)]")
    assert seen == []
    mounts = ask(run, "open('/proc/self/mountinfo').read()")
    assert str(server.data) not in mounts
    assert "pool.img" not in mounts


def test_mounts_are_nosuid_and_nodev(run: Run) -> None:
    """But for /dev and the device files bound into it: the sandbox cannot make others."""
    for line in ask(run, "open('/proc/self/mountinfo').read()").splitlines():
        point, options = line.split()[4:6]
        if point != "/dev" and not point.startswith(("/dev/", "/proc/")):
            assert {"nosuid", "nodev"} <= set(options.split(",")), line
        assert "nosuid" in options or point.startswith(("/dev/", "/proc/")), line


def test_no_set_user_id_works(run: Run) -> None:
    code = "import subprocess; print(subprocess.run(['su', '-c', 'id -u'], capture_output=True).returncode != 0)"
    assert run(code)["stdout"]["text"] == "True\n"


MASKED = ["kcore", "keys", "key-users", "timer_list", "kallsyms", "modules", "vmallocinfo", "interrupts", "slabinfo"]


@pytest.mark.parametrize("name", MASKED)
def test_proc_is_masked(name: str, run: Run) -> None:
    code = f"""
try:
    print(len(open("/proc/{name}", "rb").read(64)))
except OSError:
    print(0)
"""
    assert run(code)["stdout"]["text"] == "0\n"


@pytest.mark.parametrize(
    "path",
    [
        "/proc/sys/kernel/hostname",
        "/proc/sysrq-trigger",
        "/proc/sys/vm/drop_caches",
        "/opt/cloister/bin/cloister-agent",
        "/proc/1/environ",
        "/proc/1/mem",
        "/etc/hostname",
    ],
)
def test_not_writable(path: str, run: Run) -> None:
    code = f"try: open('{path}', 'wb'); print('open')\nexcept OSError as error: print('no')"
    assert run(code)["stdout"]["text"] == "no\n"


def test_the_agent_tells_nothing(run: Run) -> None:
    code = """
import os
for path in ("/proc/1/environ", "/proc/1/root", "/proc/1/fd", "/proc/1/maps"):
    try:
        open(path, "rb").read() if path.endswith(("environ", "maps")) else os.listdir(path)
        print("read", path)
    except OSError:
        print("no")
try:
    os.kill(1, 9)
    print("killed")
except OSError:
    print("no")
"""
    assert run(code)["stdout"]["text"] == "no\n" * 5


def test_devices(run: Run) -> None:
    names = set(ask(run, "os.listdir('/dev')"))
    assert {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "fd"} <= names
    assert names <= {
        "null",
        "zero",
        "full",
        "random",
        "urandom",
        "tty",
        "ptmx",
        "pts",
        "shm",
        "fd",
        "stdin",
        "stdout",
        "stderr",
    }
    assert ask(run, "[open('/dev/null').read(), len(open('/dev/urandom', 'rb').read(8))]") == ["", 8]


# --- Limits ---


def test_memory_limit(client: httpx.Client) -> None:
    made = create_sandbox(client, memory_mb=256)
    path = f"/v1/sandboxes/{made['id']}/runs"
    done = client.post(
        path, json={"code": "print('before', flush=True)\nhog = bytearray(400 << 20)\nprint(len(hog))"}
    ).json()
    again = client.post(path, json={"code": "print('still here')"}).json()
    client.delete(f"/v1/sandboxes/{made['id']}")
    assert done["end_reason"] == "oom", done
    assert done["stdout"]["text"] == "before\n"
    assert done["exit_code"] in (None, 137)
    assert done["state_lost"] is True
    assert again["stdout"]["text"] == "still here\n"


def test_process_limit(run: Run) -> None:
    code = """
import os, signal
children = []
try:
    while len(children) < 2000:
        pid = os.fork()
        if pid == 0:
            signal.pause()
        children.append(pid)
except OSError as error:
    print(error.errno == 11)
for pid in children:
    os.kill(pid, 9)
print(400 < len(children) <= 512)
"""
    done = run(code)
    assert done["stdout"]["text"] == "True\nTrue\n"
    assert (done["end_reason"], done["limits_hit"]) == ("ok", ["pids"])


def test_disk_limit(client: httpx.Client) -> None:
    """Many files, so that it is the quota that ends it, not the limit of one file."""
    made = create_sandbox(client, disk_mb=128)
    code = """
import os
written = 0
try:
    for number in range(20):
        with open(f"part{number}", "wb") as file:
            for _ in range(20):
                written += file.write(os.urandom(1 << 20))
                file.flush()
            os.fsync(file.fileno())
    print("all written")
except OSError as error:
    print(error.errno in (28, 122), written <= 160 << 20)
"""
    done = client.post(f"/v1/sandboxes/{made['id']}/runs", json={"code": code}).json()
    client.delete(f"/v1/sandboxes/{made['id']}")
    assert done["stdout"]["text"] == "True True\n"


def test_the_kernels_end_is_not_the_sandboxs(run: Run) -> None:
    done = run("import os, signal\nprint('last words', flush=True)\nos.kill(os.getpid(), signal.SIGKILL)")
    assert (done["end_reason"], done["exit_code"], done["state_lost"]) == ("kernel_died", 137, True)
    assert done["stdout"]["text"] == "last words\n"
    assert run("print('back')")["stdout"]["text"] == "back\n"
