"""Programs that clients start in a sandbox: pipes, the life of a process, what is kept of its output, and what it reads."""

from __future__ import annotations

import base64
import concurrent.futures
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from conftest import create_sandbox, new_client
from service import Service, wait_until
from sse import Event, read_events, text_of
from streams import read_lines

EVENTS = {"Accept": "text/event-stream"}
LINES = {"Accept": "application/x-ndjson"}
SHELL = ["/bin/bash", "-c"]


class Box:
    """Processes of one sandbox."""

    def __init__(self, client: httpx.Client, sandbox_id: str) -> None:
        self.client, self.id = client, sandbox_id

    @property
    def url(self) -> str:
        return f"/v1/sandboxes/{self.id}/processes"

    def post(self, command: str | list[str], **fields: Any) -> httpx.Response:
        program = {"command": command} if isinstance(command, str) else {"argv": command}
        return self.client.post(self.url, json={**program, **fields})

    def start(self, command: str | list[str], **fields: Any) -> str:
        answer = self.post(command, **fields)
        assert answer.status_code == 201, answer.text
        return answer.json()["id"]

    def run(self, command: str | list[str], **fields: Any) -> dict[str, Any]:
        """Starts it and waits for its end."""
        answer = self.post(command, wait=True, **fields)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def get(self, process: str) -> dict[str, Any]:
        answer = self.client.get(f"{self.url}/{process}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def end_of(self, process: str, seconds: float = 30) -> dict[str, Any]:
        wait_until(lambda: self.get(process)["state"] == "ended", seconds, "the process has ended")
        return self.get(process)

    def events(self, process: str, after: int = 0) -> list[Event]:
        path = f"{self.url}/{process}/events"
        with self.client.stream("GET", path, params={"after": after}, headers=EVENTS) as answer:
            assert answer.status_code == 200
            return list(read_events(answer.iter_bytes()))

    def stdin(self, process: str, data: bytes, *, eof: bool = False) -> httpx.Response:
        return self.client.post(f"{self.url}/{process}/stdin", content=data, params={"eof": str(eof).lower()})

    def signal(self, process: str, name: str) -> httpx.Response:
        return self.client.post(f"{self.url}/{process}/signal", json={"signal": name})

    def wrote(self, process: str, text: str) -> None:
        """Waits until the process has written that."""
        path = f"{self.url}/{process}/events"
        seen = ""
        with self.client.stream("GET", path, headers=EVENTS) as answer:
            for event in read_events(answer.iter_bytes()):
                if event.type in ("stdout", "stderr"):
                    seen += event.data["text"]
                if text in seen:
                    return
        raise AssertionError(f"it ended without {text!r}: {seen!r}")

    def alive(self, pattern: str) -> list[str]:
        """Processes of the sandbox whose command line is like that."""
        return self.run(["pgrep", "-f", pattern])["stdout"]["text"].split()


@pytest.fixture
def box(client: httpx.Client, shared: dict[str, Any]) -> Iterator[Box]:
    box = Box(client, shared["id"])
    yield box
    for process in client.get(box.url).json()["processes"]:
        client.delete(f"{box.url}/{process['id']}")


# --- Starting ---


def test_a_foreground_process_answers_with_its_output(box: Box) -> None:
    done = box.run("echo out; echo err >&2; exit 3")
    assert (done["stdout"]["text"], done["stderr"]["text"]) == ("out\n", "err\n")
    assert (done["state"], done["exit_code"], done["end_reason"]) == ("ended", 3, "error")
    assert done["argv"] == [*SHELL, "echo out; echo err >&2; exit 3"]


def test_words_are_not_read_by_a_shell(box: Box) -> None:
    assert box.run(["echo", "$HOME", "*", "a b"])["stdout"]["text"] == "$HOME * a b\n"


def test_where_and_as_what_it_runs(box: Box) -> None:
    done = box.run('pwd; id -un; echo "$HOME $X"', cwd="/tmp", env={"X": "y"})
    assert done["stdout"]["text"].splitlines() == ["/tmp", "user", "/home/user y"]
    done = box.run('pwd; id -u; echo "$HOME"; touch /etc/made && echo made', user="root")
    assert done["stdout"]["text"].splitlines() == ["/root", "0", "/root", "made"]
    assert (done["user"], done["end_reason"]) == ("root", "ok")


def test_the_environment_of_the_sandbox_is_there(client: httpx.Client) -> None:
    made = create_sandbox(client, env={"A": "of the sandbox", "B": "of the sandbox"})
    done = Box(client, made["id"]).run('echo "$A, $B"', env={"B": "own"})
    assert done["stdout"]["text"] == "of the sandbox, own\n"
    assert client.delete(f"/v1/sandboxes/{made['id']}").status_code == 204


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"argv": ["no-such-program"]}, "argv"),
        ({"argv": ["/etc/passwd"]}, "argv"),
        ({"argv": ["true"], "cwd": "/no/such/place"}, "cwd"),
        ({"argv": ["true"], "stdin_path": "/no/such/file"}, "stdin_path"),
        ({"argv": ["true"], "stdin_path": "/home"}, "stdin_path"),
        ({"argv": ["true"], "stdin_path": "/etc/shadow"}, "stdin_path"),
        ({"argv": []}, "argv"),
        ({"argv": ["true"], "command": "true"}, "argv"),
        ({}, "argv"),
        ({"argv": ["a\0b"]}, "argv"),
        ({"argv": ["true"], "user": "postgres"}, "user"),
        ({"argv": ["true"], "stdin": "x", "stdin_open": True}, "stdin"),
        ({"argv": ["true"], "pty": {"cols": 0}}, "pty"),
        ({"argv": ["true"], "pty": {}, "stdin": "x"}, "pty"),
        ({"argv": ["true"], "timeout_ms": 0}, "timeout_ms"),
        ({"argv": ["true"], "env": {"": "x"}}, "env"),
        ({"argv": ["true"], "shell": True}, "shell"),
    ],
    ids=str,
)
def test_what_cannot_be_started_names_its_field(box: Box, fields: dict[str, Any], field: str) -> None:
    answer = box.client.post(box.url, json=fields)
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"]["field"] == field
    assert box.client.get(box.url).json()["processes"] == []


# --- stdin ---


def test_without_stdin_a_program_is_at_its_end_at_once(box: Box) -> None:
    assert box.run(["cat"])["end_reason"] == "ok"


def test_stdin_as_text(box: Box) -> None:
    text = "é" * 300_000
    assert box.run(["wc", "-c"], stdin=text)["stdout"]["text"].strip() == str(len(text.encode()))


def test_stdin_from_a_file(box: Box) -> None:
    box.run("seq 5 > numbers")
    assert box.run(["tail", "-n1"], stdin_path="numbers")["stdout"]["text"] == "5\n"
    box.run("mkfifo fifo")
    assert box.post(["cat"], stdin_path="fifo").status_code == 422  # and nobody waits for a writer


def test_stdin_that_stays_open(box: Box) -> None:
    process = box.start(["cat"], stdin_open=True)
    assert box.get(process)["stdin_open"]
    assert box.stdin(process, b"one\n").status_code == 204
    box.wrote(process, "one\n")
    assert box.stdin(process, b"two\n", eof=True).status_code == 204
    assert box.end_of(process)["exit_code"] == 0
    assert text_of(box.events(process), "stdout") == "one\ntwo\n"
    assert box.stdin(process, b"late").status_code == 409


def test_much_stdin_waits_for_its_reader(box: Box) -> None:
    process = box.start("mkfifo go; read -r _ < go; wc -c", stdin_open=True)
    sent = threading.Event()
    piece = b"x" * (1 << 20)

    def send() -> None:
        for last in (False, False, True):
            assert box.stdin(process, piece, eof=last).status_code == 204
        sent.set()

    sender = threading.Thread(target=send)
    sender.start()
    assert not sent.wait(0.5)  # nobody reads, and nobody holds 3 MiB
    box.run("echo > go")
    sender.join(30)
    assert box.end_of(process)["exit_code"] == 0
    assert text_of(box.events(process), "stdout").strip() == str(3 << 20)


def test_a_process_without_an_open_stdin_takes_none(box: Box) -> None:
    process = box.start(["sleep", "60"])
    answer = box.stdin(process, b"x")
    assert answer.status_code == 409
    assert "stdin_open" in answer.json()["error"]["message"]


# --- Life ---


def test_it_is_listed_while_it_runs_and_after_it(box: Box) -> None:
    first = box.start(["sleep", "60"], tag="first")
    second = box.start(["true"])
    box.end_of(second)
    listed = box.client.get(box.url).json()["processes"]
    assert [(p["id"], p["state"], p.get("tag")) for p in listed] == [
        (first, "running", "first"),
        (second, "ended", None),
    ]
    assert box.client.delete(f"{box.url}/{first}").status_code == 204
    assert box.client.get(f"{box.url}/{first}").status_code == 404
    assert box.client.delete(f"{box.url}/{first}").status_code == 404


def test_events_come_live_and_in_order(box: Box) -> None:
    path = box.url
    body = {"command": "echo one; read -r line; echo $line >&2; echo three", "stdin_open": True}
    with box.client.stream("POST", path, json=body, headers=EVENTS) as answer:
        events = read_events(answer.iter_bytes())
        started = next(events)
        assert (started.type, started.id) == ("started", 0)
        assert next(events).data["text"] == "one\n"
        box.stdin(started.data["process"]["id"], b"two\n")
        rest = list(events)
    assert [(e.type, e.data.get("text")) for e in rest[:-1]] == [("stderr", "two\n"), ("stdout", "three\n")]
    assert rest[-1].type == "ended"
    assert rest[-1].data["process"]["exit_code"] == 0
    assert rest[-1].id == len("one\ntwo\nthree\n")


def test_reading_again_from_an_offset(box: Box) -> None:
    process = box.start("printf %s abcdefgh; sleep 0.3; printf %s IJ >&2; sleep 0.3; printf %s klm")
    box.end_of(process)
    assert "".join(e.data["text"] for e in box.events(process) if "text" in e.data) == "abcdefghIJklm"
    for after in range(15):
        text = "".join(e.data["text"] for e in box.events(process, after) if "text" in e.data)
        assert text == "abcdefghIJklm"[after:]
    assert [e.type for e in box.events(process, 13)] == ["started", "ended"]


def test_lines_tell_the_same(box: Box) -> None:
    process = box.start("echo out; echo err >&2")
    box.end_of(process)
    with box.client.stream("GET", f"{box.url}/{process}/events", headers=LINES) as answer:
        assert list(read_lines(answer.iter_lines())) == box.events(process)


def test_bytes_that_are_no_text_survive(box: Box) -> None:
    process = box.start(["head", "-c", "300000", "/dev/urandom"])
    done = box.end_of(process)
    assert done["output_bytes"] == 300_000
    data = b"".join(
        base64.b64decode(e.data["base64"]) if "base64" in e.data else e.data["text"].encode()
        for e in box.events(process)
        if e.type == "stdout"
    )
    box.client.put(f"/v1/sandboxes/{box.id}/files", params={"path": "copy"}, content=data)
    assert len(data) == 300_000


def test_characters_are_not_cut(box: Box) -> None:
    process = box.start(r"printf 'a\xe2\x82'; sleep 0.3; printf '\xacb'; printf '\xe2'")
    box.end_of(process)
    texts = [e.data["text"] for e in box.events(process) if e.type == "stdout"]
    assert "".join(texts) == "a€b\ufffd"


def test_it_outlives_its_client_and_is_read_from_the_start(box: Box, server: Service) -> None:
    with new_client(server, Authorization=f"Bearer {server.key}") as other:
        body = {"command": "for i in $(seq 20); do echo $i; sleep 0.05; done"}
        with other.stream("POST", box.url, json=body, headers=EVENTS) as answer:
            process = next(read_events(answer.iter_bytes())).data["process"]["id"]
    assert box.get(process)["state"] == "running"  # the client has gone
    box.end_of(process)
    assert text_of(box.events(process), "stdout").split() == [str(i) for i in range(1, 21)]


def test_or_it_ends_with_its_client(box: Box, server: Service) -> None:
    with new_client(server, Authorization=f"Bearer {server.key}") as other:
        body = {"argv": ["sleep", "60"], "on_disconnect": "kill"}
        with other.stream("POST", box.url, json=body, headers=EVENTS) as answer:
            process = next(read_events(answer.iter_bytes())).data["process"]["id"]
    assert box.end_of(process)["end_reason"] == "cancelled"


def test_several_read_the_same(box: Box) -> None:
    process = box.start("sleep 0.3; seq 20000")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(lambda _: text_of(box.events(process), "stdout"), range(8)))
    assert set(texts) == {"".join(f"{i}\n" for i in range(1, 20_001))}


def test_a_signal_ends_it(box: Box) -> None:
    process = box.start(["sleep", "60"])
    assert box.signal(process, "TERM").status_code == 204
    done = box.end_of(process)
    assert (done["signal"], done["exit_code"], done["end_reason"]) == ("TERM", 143, "error")
    assert box.signal(process, "TERM").status_code == 409
    assert box.signal(process, "FLY").status_code == 422


def test_a_signal_reaches_the_program(box: Box) -> None:
    process = box.start("trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.05; done")
    box.wrote(process, "ready")
    box.signal(process, "SIGINT")
    assert box.end_of(process)["exit_code"] == 7
    assert text_of(box.events(process), "stdout") == "ready\ncaught\n"


def test_kill_ends_the_tree(box: Box) -> None:
    tree = "sleep 321 & setsid sleep 321 & (sleep 321 & exec sleep 321) & (sleep 321 &) ; echo up; wait"
    process = box.start(tree)
    box.wrote(process, "up")
    wait_until(lambda: len(box.alive("^sleep 321")) == 5, 10, "all are up")
    box.signal(process, "KILL")
    done = box.end_of(process)
    assert (done["end_reason"], done["signal"]) == ("cancelled", "KILL")
    wait_until(lambda: box.alive("^sleep 321") == [], 10, "the tree is gone")


def test_delete_ends_the_tree_too(box: Box) -> None:
    process = box.start("sleep 322 & echo up; wait")
    box.wrote(process, "up")
    assert box.client.delete(f"{box.url}/{process}").status_code == 204
    wait_until(lambda: box.alive("^sleep 322") == [], 10, "the tree is gone")


def test_a_timeout(box: Box) -> None:
    begin = time.monotonic()
    done = box.run("echo early; trap '' TERM; sleep 323 & wait; sleep 60", timeout_ms=500)
    assert (done["end_reason"], done["stdout"]["text"]) == ("timeout", "early\n")
    assert 0.5 <= time.monotonic() - begin < 5
    assert "timeout_ms" in done["message"]
    wait_until(lambda: box.alive("^sleep 323") == [], 10, "what it started is gone")


def test_a_background_child_that_holds_the_pipe_delays_nothing(box: Box) -> None:
    begin = time.monotonic()
    done = box.run("(sleep 2; echo late; sleep 324) & echo early")
    assert time.monotonic() - begin < 2
    assert (done["stdout"]["text"], done["end_reason"]) == ("early\n", "ok")
    # It lives on, also when it writes to the pipe that nobody reads any more.
    wait_until(lambda: box.alive("^sleep 324") != [], 10, "it lives on")
    box.run(["pkill", "-f", "^sleep 324"])


def test_an_ended_process_that_wrote_much_is_whole(box: Box) -> None:
    done = box.run("seq 400000; exit 4", inline_bytes=4 << 20)
    expected = "".join(f"{i}\n" for i in range(1, 400_001))
    assert done["exit_code"] == 4
    assert done["stdout"]["text"] == expected


def test_the_oldest_output_goes(box: Box) -> None:
    process = box.start("head -c 80000000 /dev/zero; echo end")
    done = box.end_of(process, 60)
    assert done["output_bytes"] == 80_000_004
    kept = done["output_bytes"] - done["output_first"]
    assert 50 << 20 < kept <= 68 << 20
    events = box.events(process)
    assert [e.type for e in events[:2]] == ["started", "dropped"]
    assert events[1].data["bytes"] + sum(len(e.data["text"]) for e in events if e.type == "stdout") == 80_000_004
    assert events[-2].data["text"].endswith("end\n")


def test_a_slow_reader_slows_the_program(box: Box) -> None:
    """Else a terminal would show megabytes of the past after Ctrl-C."""
    body = {"argv": ["yes"]}
    with box.client.stream("POST", box.url, json=body, headers=EVENTS) as answer:
        events = read_events(answer.iter_raw(1 << 16))
        process = next(events).data["process"]["id"]
        next(events)
        before = 0
        for _ in range(50):  # until it stands still: nobody reads
            now = box.get(process)["output_bytes"]
            if now == before and now > 0:
                break
            before = now
            time.sleep(0.2)
        else:
            pytest.fail(f"it never waited: {before} bytes")
        assert before < 32 << 20
    wait_until(lambda: box.get(process)["output_bytes"] > before, 10, "without a reader it goes on")
    box.signal(process, "KILL")


def test_two_hundred_at_the_same_time(client: httpx.Client) -> None:
    made = create_sandbox(client, memory_mb=1024)
    box = Box(client, made["id"])

    def one(number: int) -> tuple[str, str]:
        with client.stream(
            "POST",
            box.url,
            json={"command": f"read -r _; seq {number} {number + 999}", "stdin_open": True},
            headers=EVENTS,
            timeout=120,
        ) as answer:
            events = read_events(answer.iter_bytes())
            process = next(events).data["process"]["id"]
            up.wait()
            taken = box.stdin(process, b"go\n")
            assert taken.status_code == 204, (taken.text, list(events))
            all_events = list(events)
        return text_of(all_events, "stdout"), all_events[-1].data["process"]["end_reason"]

    up = threading.Barrier(200, timeout=60)
    limits = httpx.Limits(max_connections=450)
    with httpx.Client(base_url=client.base_url, headers=client.headers, timeout=120, limits=limits) as wide:
        box.client = client = wide
        with concurrent.futures.ThreadPoolExecutor(200) as pool:
            for number, (text, reason) in enumerate(pool.map(one, range(200))):
                assert (text, reason) == ("".join(f"{i}\n" for i in range(number, number + 1000)), "ok")
        assert client.delete(f"/v1/sandboxes/{made['id']}").status_code == 204


def test_more_than_the_limit_is_refused(client: httpx.Client) -> None:
    made = create_sandbox(client)
    box = Box(client, made["id"])
    for _ in range(256):
        box.start(["sleep", "100"])
    answer = box.post(["true"])
    assert answer.status_code == 429
    assert "256" in answer.json()["error"]["message"]
    listed = client.get(box.url).json()["processes"]
    assert len(listed) == 256
    box.signal(listed[0]["id"], "KILL")
    box.end_of(listed[0]["id"])
    assert box.run(["true"])["end_reason"] == "ok"
    assert client.delete(f"/v1/sandboxes/{made['id']}").status_code == 204


def test_a_run_that_is_stopped_spares_processes(box: Box) -> None:
    process = box.start(["sleep", "60"])
    answer = box.client.post(
        f"/v1/sandboxes/{box.id}/runs", json={"code": "while True: pass", "timeout_ms": 300}
    )
    assert answer.json()["end_reason"] == "timeout"
    assert box.get(process)["state"] == "running"


def test_the_memory_limit_is_the_reason(client: httpx.Client) -> None:
    made = create_sandbox(client, memory_mb=192)
    done = Box(client, made["id"]).run(["python3", "-c", "x = bytearray(1 << 30); print(len(x))"])
    assert done["end_reason"] == "oom"
    assert client.delete(f"/v1/sandboxes/{made['id']}").status_code == 204


def test_a_sandbox_that_ends_ends_its_processes(client: httpx.Client) -> None:
    made = create_sandbox(client)
    box = Box(client, made["id"])
    with client.stream("POST", box.url, json={"argv": ["sleep", "60"]}, headers=EVENTS) as answer:
        events = read_events(answer.iter_bytes())
        next(events)
        threading.Timer(0.2, lambda: client.delete(f"/v1/sandboxes/{made['id']}")).start()
        (ended,) = events
    assert ended.data["process"]["end_reason"] in ("cancelled", "sandbox_lost")
    assert "exit_code" not in ended.data["process"]


def test_it_has_no_descriptors_of_others(box: Box) -> None:
    done = box.run("ls -l /proc/self/fd")
    numbers = {line.split(" -> ")[0].split()[-1] for line in done["stdout"]["text"].splitlines() if "->" in line}
    assert numbers == {"0", "1", "2", "3"}  # 3: ls reads the directory


def test_many_open_files_are_no_more_than_elsewhere(box: Box) -> None:
    assert box.run("ulimit -n")["stdout"]["text"] == "1024\n"


def test_of_another_project_nothing_is_seen(box: Box, anonymous: httpx.Client) -> None:
    process = box.start(["sleep", "60"])
    for path in ("", f"/{process}", f"/{process}/events"):
        assert anonymous.get(box.url + path).status_code == 401
    assert json.loads(box.client.get(f"/v1/sandboxes/{'a' * 20}/processes/{process}").text)["error"]["code"] == "not_found"


def test_a_sandbox_whose_process_computes_is_not_idle(client: httpx.Client) -> None:
    busy, lazy = (create_sandbox(client, idle_timeout_seconds=1, on_idle="kill")["id"] for _ in range(2))
    Box(client, busy).start("while :; do :; done")
    Box(client, lazy).start(["sleep", "600"])
    wait_until(lambda: client.get(f"/v1/sandboxes/{lazy}").json().get("state") == "dead", 30, "what only waits is idle")
    assert client.get(f"/v1/sandboxes/{busy}").json()["state"] == "running"
    assert client.delete(f"/v1/sandboxes/{busy}").status_code == 204
