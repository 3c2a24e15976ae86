"""Runs: state, order, streams that come back, interrupts, stdin, artifacts, timeouts."""

from __future__ import annotations

import base64
import hashlib
import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from conftest import Events, Run, create_sandbox, stream
from service import wait_until
from sse import Event, read_events, text_of


class Sandbox:
    """Shorthand for the calls of one sandbox."""

    def __init__(self, client: httpx.Client, sandbox_id: str) -> None:
        self.client = client
        self.path = f"/v1/sandboxes/{sandbox_id}"

    def start(self, code: str, **fields: Any) -> str:
        """Begins a run, answers its id."""
        answer = self.client.post(f"{self.path}/runs", json={"code": code, "wait": False, **fields})
        assert answer.status_code == 202, answer.text
        return answer.json()["id"]

    def get(self, run_id: str) -> dict[str, Any]:
        return self.client.get(f"/v1/runs/{run_id}").json()

    def until(self, run_id: str, state: str, seconds: float = 30) -> dict[str, Any]:
        wait_until(lambda: self.get(run_id)["state"] == state, seconds, f"the run is {state}")
        return self.get(run_id)

    def events(self, run_id: str, after: int = 0) -> list[Event]:
        with self.client.stream("GET", f"/v1/runs/{run_id}/events", params={"after": after}) as answer:
            assert answer.status_code == 200, answer.read()
            return list(read_events(answer.iter_bytes()))

    def read(self, path: str) -> bytes:
        answer = self.client.get(f"{self.path}/files", params={"path": path})
        assert answer.status_code == 200, answer.text
        return answer.content


@pytest.fixture
def box(client: httpx.Client, sandbox: dict[str, Any]) -> Sandbox:
    return Sandbox(client, sandbox["id"])


# --- State ---


@pytest.mark.complaint(18)
def test_variables_stay(run: Run) -> None:
    run("total = 41\ndef more(): return total + 1")
    done = run("print(more())")
    assert (done["end_reason"], done["exit_code"], done["stdout"]["text"]) == ("ok", 0, "42\n")
    assert done["state_lost"] is False


def test_files_stay_in_their_sandbox(run: Run, client: httpx.Client) -> None:
    run("open('/home/user/note.txt', 'w').write('mine')")
    assert run("print(open('note.txt').read())")["stdout"]["text"] == "mine\n"

    other = create_sandbox(client)
    code = "import os; print(os.path.exists('/home/user/note.txt'))"
    done = client.post(f"/v1/sandboxes/{other['id']}/runs", json={"code": code}).json()
    client.delete(f"/v1/sandboxes/{other['id']}")
    assert done["stdout"]["text"] == "False\n"


def test_a_run_is_kept_after_its_end(run: Run, client: httpx.Client) -> None:
    done = run("print('kept'); 1 + 1")
    kept = client.get(f"/v1/runs/{done['id']}").json()
    assert kept == done


def test_env_argv_and_filename_are_of_one_run(run: Run) -> None:
    code = "import os, sys; print(os.environ.get('MODE'), sys.argv)"
    assert run(code, env={"MODE": "fast"}, argv=["prog", "a b"])["stdout"]["text"] == "fast ['prog', 'a b']\n"
    assert run(code)["stdout"]["text"].startswith("None ")


def test_inline_files_are_there(run: Run) -> None:
    files = [
        {"path": "deep/er/text.txt", "content": "grüß"},
        {"path": "/home/user/raw.bin", "content_base64": base64.b64encode(bytes(range(256))).decode()},
    ]
    code = "print(open('deep/er/text.txt').read(), open('raw.bin', 'rb').read() == bytes(range(256)))"
    assert run(code, files=files)["stdout"]["text"] == "grüß True\n"


# --- Events ---


def by_stream(events: list[Event]) -> Iterator[tuple[str, list[str]]]:
    """Texts in a row on one stream; where a text is cut into events is nobody's promise."""
    written = [event for event in events if event.type in ("stdout", "stderr")]
    for name, group in itertools.groupby(written, key=lambda event: event.type):
        yield name, [event.data["text"] for event in group]


def test_events_are_numbered_and_ordered(events: Events) -> None:
    seen = events("import sys\nprint('a')\nprint('b', file=sys.stderr)\nprint('c')\n'd'")
    assert [event.id for event in seen] == list(range(1, len(seen) + 1))
    assert seen[0].type == "started"
    assert seen[-1].type == "ended"
    assert [event.type for event in seen].count("ended") == 1
    assert [(name, "".join(texts)) for name, texts in by_stream(seen)] == [
        ("stdout", "a\n"),
        ("stderr", "b\n"),
        ("stdout", "c\n"),
    ]
    assert seen[-1].data["end_reason"] == "ok"
    assert "stdout" not in seen[-1].data


def test_output_is_live(client: httpx.Client, sandbox: dict[str, Any]) -> None:
    body = {"code": "import time\nprint('early')\ntime.sleep(2)\nprint('late')"}
    headers = {"Accept": "text/event-stream"}
    text, arrival = "", {}
    with client.stream("POST", f"/v1/sandboxes/{sandbox['id']}/runs", json=body, headers=headers) as answer:
        for event in read_events(answer.iter_bytes()):
            text += event.data["text"] if event.type == "stdout" else ""
            for word in ("early", "late"):
                if word in text:
                    arrival.setdefault(word, time.monotonic())
    assert arrival["late"] - arrival["early"] > 1.5


def test_a_reader_resumes_after_any_event(box: Sandbox) -> None:
    run_id = box.start("import time\nfor i in range(5):\n    print(i)\n    time.sleep(0.05)")
    whole = box.events(run_id)
    assert text_of(whole, "stdout") == "0\n1\n2\n3\n4\n"
    for after in range(len(whole)):
        assert box.events(run_id, after) == whole[after:]


def test_two_readers_see_the_same(box: Sandbox) -> None:
    run_id = box.start("import time\nfor i in range(10):\n    print(i)\n    time.sleep(0.05)")
    seen: list[list[Event]] = []
    readers = [threading.Thread(target=lambda: seen.append(box.events(run_id))) for _ in range(2)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert seen[0] == seen[1]


def test_a_late_reader_is_told_what_it_missed(box: Sandbox) -> None:
    """More output than is kept for readers that come back: the gap is counted exactly."""
    run_id = box.start("for i in range(1600): print('x' * 9999)")
    box.until(run_id, "ended", 60)
    dropped, *rest = box.events(run_id)
    assert dropped.type == "dropped"
    assert dropped.data["events"] == dropped.id
    assert [event.id for event in rest] == list(range(dropped.id + 1, rest[-1].id + 1))
    total = rest[-1].data["metrics"]["output_bytes"]
    assert total == 16_000_000
    # `started` is among what was dropped, and counts with its own few bytes.
    assert 0 <= dropped.data["bytes"] + len(text_of(rest, "stdout")) - total < 1000


@pytest.mark.parametrize("policy", ["continue", "interrupt"])
def test_a_client_that_vanishes(policy: str, box: Sandbox) -> None:
    body = {"code": "import time\nprint('go')\ntime.sleep(2)\nprint('end')", "on_disconnect": policy}
    headers = {"Accept": "text/event-stream"}
    with box.client.stream("POST", f"{box.path}/runs", json=body, headers=headers) as answer:
        first = next(read_events(answer.iter_bytes()))
    run_id = first.data["run"] if isinstance(first.data["run"], str) else first.data["run"]["id"]
    ended = box.until(run_id, "ended", 10)
    assert ended["end_reason"] == {"continue": "ok", "interrupt": "interrupted"}[policy]
    assert ("end" in ended["stdout"]["text"]) == (policy == "continue")


@pytest.mark.parametrize("after", ["-1", "x", "1.5", "99999999999999999999999"])
def test_a_wrong_event_number_is_refused(after: str, run: Run, client: httpx.Client) -> None:
    answer = client.get(f"/v1/runs/{run('1')['id']}/events?after={after}")
    assert answer.status_code in (400, 422)


# --- The queue of a context ---


def test_runs_of_one_sandbox_keep_their_order(box: Sandbox) -> None:
    started = [box.start(f"import time; time.sleep(0.05); seen = globals().get('seen', []) + [{i}]") for i in range(8)]
    last = box.start("print(seen)")
    assert box.until(last, "ended")["stdout"]["text"] == "[0, 1, 2, 3, 4, 5, 6, 7]\n"
    assert [box.get(run_id)["end_reason"] for run_id in started] == ["ok"] * 8


@pytest.mark.complaint(19)
def test_a_queued_run_says_so_and_can_be_taken_back(box: Sandbox) -> None:
    running = box.start("import time; time.sleep(30)")
    queued = box.start("open('/home/user/ran', 'w').close()")
    box.until(running, "running")
    assert box.get(queued)["state"] == "queued"
    assert box.client.post(f"/v1/runs/{queued}/interrupt").status_code == 202
    assert box.until(queued, "ended", 2)["end_reason"] == "interrupted"
    assert box.client.post(f"/v1/runs/{running}/interrupt").status_code == 202
    assert box.until(running, "ended", 3)["end_reason"] == "interrupted"
    code = "import os; print(os.path.exists('/home/user/ran'))"
    assert box.until(box.start(code), "ended")["stdout"]["text"] == "False\n"


def test_a_full_queue_refuses(box: Sandbox) -> None:
    running = box.start("import time; time.sleep(60)")
    answers = [box.client.post(f"{box.path}/runs", json={"code": "1", "wait": False}) for _ in range(70)]
    codes = [answer.status_code for answer in answers]
    assert codes.count(202) in (63, 64)
    assert set(codes) == {202, 429}
    box.client.post(f"/v1/runs/{running}/interrupt")
    last = [answer.json()["id"] for answer in answers if answer.status_code == 202][-1]
    assert box.until(last, "ended")["end_reason"] == "ok"


# --- Interrupts and timeouts ---


@pytest.mark.complaint(11)
def test_an_interrupt_keeps_the_state(box: Sandbox, run: Run) -> None:
    run("value = 5")
    run_id = box.start("import time\nprint('in')\ntime.sleep(60)")
    wait_until(
        lambda: len(box.get(run_id).get("stdout", {}).get("text", "")) > 0 or box.get(run_id)["state"] == "running",
        30,
        "it runs",
    )
    time.sleep(0.3)
    box.client.post(f"/v1/runs/{run_id}/interrupt")
    ended = box.until(run_id, "ended", 3)
    assert (ended["end_reason"], ended["state_lost"]) == ("interrupted", False)
    assert ended["stdout"]["text"] == "in\n"
    assert ended["error"]["name"] == "KeyboardInterrupt"
    assert run("print(value)")["stdout"]["text"] == "5\n"


def test_interrupting_an_ended_run_changes_nothing(run: Run, client: httpx.Client) -> None:
    done = run("1")
    answer = client.post(f"/v1/runs/{done['id']}/interrupt")
    assert answer.status_code == 202
    assert answer.json()["end_reason"] == "ok"


STUBBORN = {
    "sleeps": "import time\nprint('kept')\ntime.sleep(60)",
    "loops": "print('kept')\nwhile True: pass",
    "ignores SIGINT": "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('kept')\n"
    "while True: time.sleep(1)",
    "catches everything": "import time\nprint('kept')\nwhile True:\n    try: time.sleep(60)\n"
    "    except BaseException: pass",
    "waits for a child": "import subprocess\nprint('kept')\nsubprocess.run(['sleep', '60'])",
    "stops itself": "import os, signal\nprint('kept')\nos.kill(os.getpid(), signal.SIGSTOP)",
}


@pytest.mark.complaint(14)
@pytest.mark.complaint(17)
@pytest.mark.parametrize("code", STUBBORN.values(), ids=STUBBORN.keys())
def test_a_timeout_is_exact_and_keeps_the_output(code: str, run: Run) -> None:
    run("1")
    begin = time.monotonic()
    done = run(code, timeout_ms=1500)
    took = time.monotonic() - begin
    assert done["end_reason"] == "timeout"
    assert done["stdout"]["text"] == "kept\n"
    assert 1.4 <= took <= 2.5
    assert run("print('again')")["stdout"]["text"] == "again\n"


@pytest.mark.complaint(8)
def test_a_timeout_ends_what_the_run_started(run: Run) -> None:
    run(
        "import subprocess\nsubprocess.Popen(['sleep', '987'], start_new_session=True)\nwhile True: pass",
        timeout_ms=1000,
    )
    code = "import subprocess; print(subprocess.run(['pgrep', '-fc', 'sleep 98[7]'], capture_output=True).stdout)"
    assert run(code)["stdout"]["text"] == "b'0\\n'\n"


# --- stdin ---


ECHO = "import sys\nfor line in sys.stdin: print(len(line), line.strip())\nprint('end')"


def test_stdin_as_text(run: Run) -> None:
    assert run(ECHO, stdin="eins\nzwei\n")["stdout"]["text"] == "5 eins\n5 zwei\nend\n"


def test_without_stdin_it_is_at_its_end(run: Run) -> None:
    assert run("import sys; print(repr(sys.stdin.read()))")["stdout"]["text"] == "''\n"


def test_stdin_by_pieces(box: Sandbox) -> None:
    run_id = box.start(ECHO, stdin_open=True)
    for piece in (b"a\n", b"b", b"c\n"):
        assert box.client.post(f"/v1/runs/{run_id}/stdin", content=piece).status_code == 204
    assert box.client.post(f"/v1/runs/{run_id}/stdin", params={"eof": "true"}).status_code == 204
    assert box.until(run_id, "ended", 10)["stdout"]["text"] == "2 a\n3 bc\nend\n"
    assert box.client.post(f"/v1/runs/{run_id}/stdin", content=b"late").status_code == 409


def test_stdin_that_was_not_asked_for_is_refused(run: Run, client: httpx.Client) -> None:
    assert client.post(f"/v1/runs/{run('1')['id']}/stdin", content=b"x").status_code == 409


def test_much_stdin(run: Run) -> None:
    text = "0123456789abcde\n" * 100_000
    done = run("import sys, hashlib; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())", stdin=text)
    assert done["stdout"]["text"].strip() == hashlib.sha256(text.encode()).hexdigest()


# --- Artifacts ---


def test_artifacts_are_listed_and_read(run: Run, client: httpx.Client) -> None:
    run("open('old.txt', 'w').write('old')")
    done = run(
        "import os\nos.makedirs('out')\nopen('out/new.csv', 'w').write('a,b\\n')\nopen('pic.png', 'wb').write(b'x')"
    )
    shown = {artifact["path"]: artifact for artifact in done["artifacts"]}
    assert set(shown) == {"/home/user/out/new.csv", "/home/user/pic.png"}
    assert shown["/home/user/pic.png"]["mime"] == "image/png"
    csv = shown["/home/user/out/new.csv"]
    assert (csv["size"], csv["mime"]) == (4, "text/csv")
    assert client.get(csv["url"]).content == b"a,b\n"
    assert client.get(csv["url"] + "9").status_code == 404


# --- One call ---


def wait_until_gone(client: httpx.Client, sandbox_id: str) -> None:
    """The answer of a one-call run does not wait for the end of its sandbox."""

    def gone() -> bool:
        answer = client.get(f"/v1/sandboxes/{sandbox_id}")
        return answer.status_code == 404 or answer.json()["state"] == "dead"

    wait_until(gone, 10, "the sandbox is gone")


def test_one_call_runs_and_leaves_nothing(client: httpx.Client) -> None:
    body = {
        "code": "print(open('in.txt').read()); open('out.txt', 'w').write('done')",
        "files": [{"path": "in.txt", "content": "hello"}],
        "sandbox": {"memory_mb": 512, "metadata": {"one": "call"}},
    }
    answer = client.post("/v1/runs", json=body)
    assert answer.status_code == 200
    done = answer.json()
    assert done["stdout"]["text"] == "hello\n"
    wait_until_gone(client, done["sandbox_id"])
    assert client.get(done["artifacts"][0]["url"]).content == b"done"
    assert client.get(f"/v1/runs/{done['id']}").json()["stdout"] == done["stdout"]


def test_one_call_as_a_stream(client: httpx.Client) -> None:
    seen = stream(client, "/v1/runs", {"code": "for i in range(3): print(i)"})
    assert text_of(seen, "stdout") == "0\n1\n2\n"
    assert seen[-1].data["end_reason"] == "ok"


def test_one_call_without_waiting(client: httpx.Client) -> None:
    begin = time.monotonic()
    answer = client.post("/v1/runs", json={"code": "import time; time.sleep(3); print('later')", "wait": False})
    assert answer.status_code == 202
    assert time.monotonic() - begin < 2
    box = Sandbox(client, answer.json()["sandbox_id"])
    assert box.until(answer.json()["id"], "ended", 60)["stdout"]["text"] == "later\n"
    wait_until_gone(client, answer.json()["sandbox_id"])


# --- Output ---


@pytest.mark.complaint(21)
def test_much_output_has_head_and_tail(run: Run) -> None:
    done = run("for i in range(400_000): print(f'{i:06}')")
    out = done["stdout"]
    assert out["bytes"] == 2_800_000
    assert len(out["text"].encode()) <= (1 << 20) + 200
    assert out["text"].startswith("000000\n000001\n")
    assert out["text"].endswith("399999\n")
    assert 2_800_000 - out["omitted_bytes"] == pytest.approx(1 << 20, abs=4096)


@pytest.mark.complaint(20)
def test_the_output_limit_ends_the_run(run: Run) -> None:
    done = run("while True: print('x' * 1000)", output_max_bytes=100_000, timeout_ms=30_000)
    assert done["end_reason"] == "output_limit"
    assert done["stdout"]["text"].startswith("x" * 1000)


def test_bytes_that_are_not_text(run: Run) -> None:
    done = run("import os; os.write(1, b'a\\xffb\\n')")
    assert done["stdout"] == {"text": "a\ufffdb\n", "bytes": 4, "omitted_bytes": 0, "base64": "Yf9iCg=="}


def test_characters_are_not_cut(events: Events) -> None:
    """A character whose bytes arrive apart is still one character."""
    code = "import os, time\nfor byte in 'ü€😀'.encode(): os.write(1, bytes([byte])); time.sleep(0.02)"
    assert text_of(events(code), "stdout") == "ü€😀"
