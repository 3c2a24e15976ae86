"""`cloister` as a user calls it: exit codes, streams, files, signals."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import time
from pathlib import Path

import httpx
import pytest
from conftest import Cli
from service import Service, free_port, wait_until


def live_sandboxes(client: httpx.Client) -> set[str]:
    return {sandbox["id"] for sandbox in client.get("/v1/sandboxes").json()["sandboxes"]}


EXIT_CODES: dict[str, tuple[list[str], str, int]] = {
    "ok": (["-c", "print(1)"], "ok", 0),
    "exception": (["-c", "1/0"], "error", 1),
    "syntax error": (["-c", "def"], "error", 1),
    "sys.exit(0)": (["-c", "import sys; sys.exit(0)"], "ok", 0),
    "sys.exit(7)": (["-c", "import sys; sys.exit(7)"], "error", 7),
    "sys.exit(text)": (["-c", "import sys; sys.exit('no')"], "error", 1),
    "timeout": (["--timeout", "1", "-c", "while True: pass"], "timeout", 124),
    "oom": (["--memory", "256", "-c", "x = bytearray(1 << 30)"], "oom", 137),
    "killed": (["-c", "import os; os.kill(os.getpid(), 9)"], "kernel_died", 137),
    "os._exit": (["-c", "import os; os._exit(3)"], "kernel_died", 3),
    "os._exit(0)": (["-c", "import os; os._exit(0)"], "kernel_died", 118),
}


@pytest.mark.parametrize(("words", "reason", "code"), EXIT_CODES.values(), ids=EXIT_CODES.keys())
def test_exit_codes(words: list[str], reason: str, code: int, cli: Cli) -> None:
    done = cli("run", *words)
    assert f"ended {reason} in " in done.stderr
    assert done.returncode == code


def test_streams_are_kept_apart(cli: Cli) -> None:
    done = cli("run", "-c", "import sys; print('out'); print('err', file=sys.stderr)")
    assert done.stdout == "out\n"
    assert done.stderr.startswith("err\n")


def test_quiet_is_only_the_program(cli: Cli) -> None:
    done = cli("run", "--quiet", "-c", "print('only this')")
    assert (done.stdout, done.stderr) == ("only this\n", "")


def test_the_last_expression_is_shown(cli: Cli) -> None:
    assert cli("run", "-c", "6 * 7").stdout == "42\n"


def test_arguments_reach_the_program(cli: Cli, tmp_path: Path) -> None:
    script = tmp_path / "args.py"
    script.write_text("import sys; print(sys.argv[1:], __file__, __name__)")
    done = cli("run", str(script), "a b", "--flag", "-x")
    assert done.stdout == "['a b', '--flag', '-x'] /home/user/args.py __main__\n"
    assert cli("run", "-c", "import sys; print(sys.argv)", "one").stdout == "['-c', 'one']\n"


def test_env_and_files(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("from a file")
    code = "import os; print(os.environ['A'], os.environ['B'], open('data.txt').read(), open('sub/other').read())"
    files = ["--file", "data.txt", "--file", "data.txt:sub/other"]
    done = cli("run", "--env", "A=1", "--env", "B=x=y", *files, "-c", code)
    assert done.stdout == "1 x=y from a file from a file\n", done.stderr


def test_a_missing_file_is_named(cli: Cli) -> None:
    done = cli("run", "nothing.py")
    assert done.returncode in (2, 66)
    assert "nothing.py" in done.stderr


def test_code_from_stdin(cli: Cli) -> None:
    assert cli("run", "-", stdin="print('from stdin')").stdout == "from stdin\n"


def test_stdin_is_the_runs(cli: Cli) -> None:
    text = "".join(f"line {i}\n" for i in range(20_000))
    done = cli(
        "run", "-c", "import sys; lines = sys.stdin.readlines(); print(len(lines), lines[-1], end='')", stdin=text
    )
    assert done.stdout == "20000 line 19999\n"


def test_an_idle_stdin_does_not_hold_the_run(server: Service) -> None:
    command = [server.build.program("cloister"), "run", "-c", "print('done')"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=server.environment()
    ) as process:
        assert process.stdout is not None
        assert process.wait(30) == 0
        assert process.stdout.read() == b"done\n"


def test_charts_are_saved(cli: Cli, tmp_path: Path) -> None:
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nplt.plot([2, 1])\nplt.show()"
    done = cli("run", "-c", code)
    saved = sorted(tmp_path.glob("cloister-out/**/*.png"))
    assert len(saved) == 2, done.stderr
    for path in saved:
        assert path.read_bytes().startswith(b"\x89PNG")
        assert str(path.relative_to(tmp_path)) in done.stderr


def test_made_files_are_listed_and_fetched(cli: Cli, tmp_path: Path) -> None:
    code = "import os; os.mkdir('res'); open('res/a.txt', 'w').write('AAA'); open('b.txt', 'w').write('BB')"
    listed = cli("run", "-c", code)
    assert "res/a.txt" in listed.stderr
    assert "b.txt" in listed.stderr
    assert not (tmp_path / "b.txt").exists()
    fetched = cli("run", "--out", "got", "-c", code)
    assert fetched.returncode == 0, fetched.stderr
    assert (tmp_path / "got/res/a.txt").read_text() == "AAA"
    assert (tmp_path / "got/b.txt").read_text() == "BB"


def test_files_that_are_not_fetched_are_counted(cli: Cli) -> None:
    done = cli("run", "--out", "many", "-c", "for i in range(300): open(f'f{i}', 'w').close()")
    assert done.returncode == 0, done.stderr
    assert "44 more files were made and NOT fetched" in done.stderr


def test_a_program_ends_with_its_threads(cli: Cli, tmp_path: Path) -> None:
    script = tmp_path / "threads.py"
    script.write_text("import threading, time\nthreading.Timer(0.3, print, ['late']).start()\nprint('early')\n")
    assert cli("run", str(script)).stdout == "early\nlate\n"


def test_a_file_may_begin_with_a_byte_order_mark(cli: Cli, tmp_path: Path) -> None:
    script = tmp_path / "bom.py"
    script.write_bytes(b"\xef\xbb\xbfprint('read')\n")
    assert cli("run", str(script)).stdout == "read\n"


def test_json_is_events(cli: Cli) -> None:
    done = cli("run", "--json", "-c", "print('x'); 5")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(events) >= 4
    text = json.dumps(events)
    assert '"ended"' in text
    assert '"x\\n"' in text


def test_no_colours_in_a_pipe(cli: Cli) -> None:
    done = cli("run", "-c", "1/0")
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["run"],
        ["run", "--no-such-flag", "-c", "1"],
        ["run", "--timeout", "soon", "-c", "1"],
        ["run", "--timeout", "0", "-c", "1"],
        ["run", "--env", "novalue", "-c", "1"],
        ["run", "--language", "cobol", "-c", "1"],
        ["fly"],
        [],
    ],
    ids=" ".join,
)
def test_wrong_usage(words: list[str], cli: Cli) -> None:
    done = cli(*words)
    assert done.returncode == 2
    assert done.stderr.strip()


def test_no_service(cli: Cli) -> None:
    begin = time.monotonic()
    done = cli("run", "--url", f"http://127.0.0.1:{free_port()}", "-c", "1", CLOISTER_API_KEY="e2b_" + "0" * 40)
    assert done.returncode == 69
    assert "serve" in done.stderr, "the message must say how to start one"
    assert time.monotonic() - begin < 10


def test_a_wrong_key(cli: Cli, server: Service) -> None:
    done = cli("run", "-c", "1", CLOISTER_URL=server.url, CLOISTER_API_KEY="e2b_" + "0" * 40)
    assert done.returncode == 77


class Running:
    """A `cloister run` that goes on, with what it wrote."""

    def __init__(self, server: Service, code: str, cwd: Path) -> None:
        self.process = subprocess.Popen(
            [server.build.program("cloister"), "run", "-c", code],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=cwd,
            env=server.environment(),
        )
        assert self.process.stdout is not None
        self.first_line = self.process.stdout.readline()

    def end(self) -> tuple[int, str]:
        _, stderr = self.process.communicate(timeout=30)
        return self.process.returncode, stderr


def test_ctrl_c_interrupts_the_run(server: Service, client: httpx.Client, tmp_path: Path) -> None:
    before = live_sandboxes(client)
    running = Running(server, "import time\nprint('go')\ntime.sleep(60)", tmp_path)
    assert running.first_line == "go\n"
    running.process.send_signal(signal.SIGINT)
    code, stderr = running.end()
    assert code == 130
    assert "KeyboardInterrupt" in stderr
    assert "ended interrupted" in stderr
    assert live_sandboxes(client) <= before


def test_ctrl_c_twice_leaves_at_once(server: Service, client: httpx.Client, tmp_path: Path) -> None:
    before = live_sandboxes(client)
    code = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('go')\nwhile True: time.sleep(1)"
    running = Running(server, code, tmp_path)
    running.process.send_signal(signal.SIGINT)
    time.sleep(0.1)
    running.process.send_signal(signal.SIGINT)
    assert running.end()[0] == 130
    wait_until(lambda: live_sandboxes(client) <= before, 10, "the sandbox is gone")


def test_head_ends_it(server: Service, client: httpx.Client) -> None:
    before = live_sandboxes(client)
    command = f"{server.build.program('cloister')} run -c 'while True: print(1)' | head -n 2"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=server.environment(), timeout=60)
    assert done.stdout == "1\n1\n"
    wait_until(lambda: live_sandboxes(client) <= before, 10, "the sandbox is gone")


def test_every_run_leaves_no_sandbox(cli: Cli, client: httpx.Client) -> None:
    before = live_sandboxes(client)
    for code in ("1", "1/0", "import os; os._exit(9)"):
        cli("run", "-c", code)
    assert live_sandboxes(client) <= before


def test_keys(cli: Cli, client: httpx.Client) -> None:
    made = json.loads(cli("key", "create", "--json", "ci").stdout)
    assert made["key"].startswith("e2b_")
    assert "ci" in cli("key", "list").stdout
    assert cli("run", "-c", "print(1)", CLOISTER_API_KEY=made["key"]).stdout == "1\n"
    assert cli("key", "revoke", made["id"]).returncode == 0
    assert made["id"] not in [key["id"] for key in client.get("/v1/keys").json()["keys"]]


def test_status(cli: Cli, server: Service) -> None:
    shown = cli("status", "--json")
    assert shown.returncode == 0
    assert server.url in shown.stdout
    absent = cli("status", "--data", "/tmp/no-such-cloister")
    assert absent.returncode == 69


def test_version(cli: Cli) -> None:
    assert cli("version").stdout.strip().endswith("0.1.0")


BAR = "import sys, time\nfor i in range(4):\n    sys.stderr.write(f'\\r{i * 25:3}%|{chr(0x2588) * i:4}|'); sys.stderr.flush(); time.sleep(0.05)\n"


def test_a_progress_bar_arrives_as_it_was_written(server: Service, tmp_path: Path) -> None:
    command = [server.build.program("cloister"), "run", "--quiet", "-c", BAR]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, cwd=tmp_path, env=server.environment(), timeout=60)
    assert done.stderr == "".join(f"\r{i * 25:3}%|{chr(0x2588) * i:4}|" for i in range(4)).encode()


def test_on_a_terminal_nothing_is_written_behind_an_open_bar(server: Service, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [server.build.program("cloister"), "run", "-c", BAR + "1 / 0"]
    running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, cwd=tmp_path, env=server.environment())
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):  # EIO: the last writer has gone
        while piece := os.read(ours, 65536):
            seen += piece
    os.close(ours)
    assert running.wait(30) == 1
    bar = "\r 75%|███ |".encode()
    assert bar + b"\r\n" in seen  # the traceback begins on a line of its own
    assert b"ZeroDivisionError" in seen.partition(bar)[2]
