"""`sudo` in a sandbox: root of the sandbox, by way of the agent, without a setuid bit anywhere."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from conftest import Events, Run


def shell(run: Run, command: str, **fields: Any) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a shell command that user code starts."""
    code = f"""
import json, subprocess
done = subprocess.run(["bash", "-c", {command!r}], capture_output=True, text=True, stdin=subprocess.DEVNULL)
print(json.dumps([done.returncode, done.stdout, done.stderr]))
"""
    done = run(code, **fields)
    assert done["end_reason"] == "ok", done
    code, out, err = json.loads(done["stdout"]["text"])
    return code, out, err


WORKS = {
    "id": ("sudo id -u", "0\n"),
    "group": ("sudo id -gn; sudo id -G", "root\n0\n"),
    "apt-get": ("sudo apt-get --version | head -c4", "apt "),
    "pipe": ("echo x | sudo tee /etc/y; cat /etc/y", "x\nx\n"),
    "chown": ("touch f; sudo chown root:root f; stat -c %U:%G f; rm -f f && echo gone", "root:root\ngone\n"),
    "chmod of another's": ("sudo touch /etc/z; sudo chmod 600 /etc/z; cat /etc/z 2>/dev/null || echo no", "no\n"),
    "-u user": ("sudo -u user id -u", "1000\n"),
    "root to user": ("sudo sudo -u user id -un", "user\n"),
    "root to root": ("sudo sudo id -u", "0\n"),
    "su": ("sudo su user -c 'id -un'", "user\n"),
    "su to another": ("sudo su www-data -s /bin/sh -c 'id -un'", "www-data\n"),
    "options": ("sudo -n -S -H -E id -u", "0\n"),
    "--": ("sudo -- id -u", "0\n"),
    "-k, -v and -l": ("sudo -k && sudo -v && sudo -l | wc -l", "1\n"),
    "variable": ("sudo A='1 2' printenv A", "1 2\n"),
    "fresh environment": ("A=1 sudo printenv A || echo none", "none\n"),
    "-E": ("A=1 sudo -E printenv A", "1\n"),
    "home": ("sudo printenv HOME USER SUDO_USER SUDO_UID", "/root\nroot\nuser\n1000\n"),
    "path": ("sudo printenv PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"),
    "working directory": ("cd /tmp && sudo pwd", "/tmp\n"),
    "-i": ("sudo -i pwd", "/root\n"),
    "-i with quotes": ("sudo -i printf '%s-' 'a b' c", "a b-c-"),
    "-s": ("sudo -s echo '$HOME;'", "/root;\n"),
    "relative path": ("printf '#!/bin/sh\\nid -u\\n' > own; chmod +x own; sudo ./own", "0\n"),
    "heredoc": ("sudo sh <<< 'id -u'", "0\n"),
    "background": ("sudo sleep 0.2 & wait $!; echo $?", "0\n"),
    "capabilities": ("sudo grep -h '^Cap[EPB]' /proc/self/status | cut -f2 | sort -u", "00000000000400fb\n"),
    "no_new_privs": ("sudo grep NoNewPrivs /proc/self/status | cut -f2", "1\n"),
    "kill the user's": ("sleep 60 & sudo kill $!; wait $!; echo $?", "143\n"),
    "useradd": ("sudo useradd -m someone && id -un someone && ls -d /home/someone", "someone\n/home/someone\n"),
}


@pytest.mark.parametrize(("command", "expected"), WORKS.values(), ids=WORKS.keys())
def test_works(command: str, expected: str, run: Run) -> None:
    assert shell(run, command) == (0, expected, "")


FAILS = {
    "exit code": ("sudo sh -c 'exit 3'", 3, ""),
    "signal": ("sudo sh -c 'kill -9 $$'", 137, ""),
    "no such command": ("sudo there-is-none", 1, "sudo: there-is-none: command not found\n"),
    "not executable": ("touch plain; sudo ./plain", 1, "sudo: executing ./plain: Permission denied\n"),
    "unknown user": ("sudo -u nobody id", 1, "sudo: a sandbox has the users root and user, not nobody"),
    "unknown option": ("sudo -Z id", 1, "sudo: the option -Z is not known here"),
    "nothing": ("sudo", 1, "sudo: no command was given"),
    "too long": ("sudo true $(seq 60000)", 1, "sudo: the command and its environment are longer"),
}


@pytest.mark.parametrize(("command", "exit_code", "message"), FAILS.values(), ids=FAILS.keys())
def test_fails_clearly(command: str, exit_code: int, message: str, run: Run) -> None:
    code, _, err = shell(run, command)
    assert (code, err.startswith(message)) == (exit_code, True), err


def test_signals_are_passed_on(run: Run) -> None:
    command = """
sudo python3 -u -c 'import signal, time; signal.signal(signal.SIGTERM, lambda *_: exit(9)); print("up"); time.sleep(60)' > up &
while ! grep -q up up; do sleep 0.05; done
kill -TERM $!; wait $!; echo $?
"""
    assert shell(run, command)[:2] == (0, "9\n")


def test_the_command_ends_with_its_client(run: Run) -> None:
    command = """
sudo sh -c 'sleep 77 & sleep 78' &
while ! pgrep -f '^sleep 78' > /dev/null; do sleep 0.05; done
kill -9 $!
for _ in $(seq 100); do pgrep -f '^sleep 7[78]' > /dev/null || break; sleep 0.05; done
pgrep -f '^sleep 7[78]' || echo gone
"""
    assert shell(run, command)[1] == "gone\n"


def test_a_timeout_ends_what_runs_as_root(run: Run) -> None:
    begin = time.monotonic()
    code = "import subprocess; subprocess.run(['sudo', 'sh', '-c', 'trap \"\" INT TERM; while :; do sleep 79; done'])"
    done = run(code, timeout_ms=1500)
    assert done["end_reason"] == "timeout"
    assert time.monotonic() - begin < 30
    assert shell(run, "sleep 0.2; pgrep -f '^sleep 79' || echo gone")[1] == "gone\n"


def test_output_is_live(events: Events) -> None:
    code = "import subprocess; subprocess.run(['sudo', 'sh', '-c', 'echo one; echo two >&2'])"
    seen = events(code)
    assert "".join(event.data["text"] for event in seen if event.type == "stdout") == "one\n"
    assert "".join(event.data["text"] for event in seen if event.type == "stderr") == "two\n"


def test_many_at_once_are_bounded(run: Run) -> None:
    code = """
import socket, subprocess
def sudo(): return subprocess.run(["sudo", "true"], capture_output=True, text=True)
doors = [socket.socket(socket.AF_UNIX) for _ in range(32)]
for door in doors: door.connect("/run/cloister/root.sock")
refused = sudo()
for door in doors: door.close()
print(refused.returncode, refused.stderr, sudo().returncode)
"""
    out = run(code)["stdout"]["text"]
    assert out == "1 sudo: 32 commands run through sudo already: wait for one to end\n 0\n"


def test_junk_at_the_door(run: Run) -> None:
    """The door is open to everybody inside, so it must stand whatever comes through it."""
    code = """
import os, socket, struct, subprocess
def knock():
    door = socket.socket(socket.AF_UNIX); door.connect("/run/cloister/root.sock"); door.settimeout(5); return door
def answer(door):
    try: return door.recv(100)
    except OSError as error: return type(error).__name__
fds = [os.open("/dev/null", os.O_RDWR) for _ in range(40)]
for count in (0, 1, 2, 4, 32):
    door = knock(); socket.send_fds(door, [b"s"], fds[:count]); print(answer(door))
for body in (b"", b"x", b"r/\\x00-1\\x00", b"r/\\x00999\\x00ls\\x00"):
    door = knock(); socket.send_fds(door, [b"s"], fds[:3]); door.send(struct.pack("<I", len(body)) + body); print(answer(door)[:1])
door = knock(); socket.send_fds(door, [b"s"], fds[:3]); door.send(b"\\xff\\xff\\xff\\x7f"); print(answer(door)[:1])
idle = [knock() for _ in range(20)]
print(subprocess.run(["sudo", "id", "-u"], capture_output=True, text=True).stdout)
"""
    out = run(code)["stdout"]["text"].splitlines()
    assert out[:5] == ["b''"] * 5, out
    assert out[5:10] == ["b'r'"] * 5, out
    assert out[10] == "0", out


def test_root_is_not_the_hosts(run: Run) -> None:
    """Root inside has no more of the host, and none of the agent."""
    tries = [
        "mount -t tmpfs none /mnt",
        "hostname evil",
        "cat /proc/1/environ",
        "ls /proc/1/fd",
        "touch /opt/cloister/x",
        "sh -c 'echo 1 > /proc/sysrq-trigger'",
        "sh -c 'echo x > /proc/sys/kernel/core_pattern'",
        "mknod /tmp/sda b 8 0",
        "unshare -U true",
        "date -s 2020-01-01",
    ]
    for attempt in tries:
        assert shell(run, f"sudo {attempt}")[0] != 0, attempt
    assert shell(run, "sudo kill -9 1; sudo id -u")[1] == "0\n"


def test_no_setuid_bit(run: Run) -> None:
    assert shell(run, "find / -xdev -perm /6000 -type f 2>/dev/null | wc -l")[1] == "0\n"
    assert shell(run, "readlink /usr/bin/sudo; stat -Lc %a /usr/bin/sudo")[1].endswith("sudo\n755\n")
