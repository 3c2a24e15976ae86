"""Contexts: interpreters of a sandbox that are made, listed, restarted and deleted; their queues; what is theirs alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from conftest import create_sandbox, result_text
from service import wait_until

# What must come through as it is: data, never source.
HOSTILE = "a'b\"c`id`$(id)${HOME}\\n\nline two\t;#&|<>*?[]é😀"


class Box:
    """Shorthand for the calls of one sandbox."""

    def __init__(self, client: httpx.Client, sandbox_id: str) -> None:
        self.client = client
        self.path = f"/v1/sandboxes/{sandbox_id}"

    def make(self, **fields: Any) -> dict[str, Any]:
        answer = self.client.post(f"{self.path}/contexts", json=fields)
        assert answer.status_code == 201, answer.text
        return answer.json()

    def list(self) -> list[dict[str, Any]]:
        return self.client.get(f"{self.path}/contexts").json()["contexts"]

    def get(self, context: str) -> dict[str, Any]:
        return self.client.get(f"{self.path}/contexts/{context}").json()

    def restart(self, context: str) -> dict[str, Any]:
        answer = self.client.post(f"{self.path}/contexts/{context}/restart")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def delete(self, context: str) -> int:
        return self.client.delete(f"{self.path}/contexts/{context}").status_code

    def run(self, code: str, **fields: Any) -> dict[str, Any]:
        answer = self.client.post(f"{self.path}/runs", json={"code": code, **fields})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def begin(self, code: str, **fields: Any) -> str:
        answer = self.client.post(f"{self.path}/runs", json={"code": code, "wait": False, **fields})
        assert answer.status_code == 202, answer.text
        return answer.json()["id"]

    def record(self, run: str) -> dict[str, Any]:
        return self.client.get(f"/v1/runs/{run}").json()

    def until(self, run: str, state: str) -> dict[str, Any]:
        wait_until(lambda: self.record(run)["state"] == state, 60, f"the run is {state}")
        return self.record(run)

    def wait_for_file(self, path: str) -> None:
        """Until code has said by a file that it is there: `started` alone does not mean that it executes."""
        wait_until(
            lambda: self.client.get(f"{self.path}/files", params={"path": path}).status_code == 200, 60, f"{path} appears"
        )


@pytest.fixture
def box(client: httpx.Client, sandbox: dict[str, Any]) -> Box:
    return Box(client, sandbox["id"])


@pytest.fixture(scope="module")
def common(client: httpx.Client, shared: dict[str, Any]) -> Box:
    return Box(client, shared["id"])


# --- Life ---


def test_a_default_context_appears_with_the_first_run(box: Box) -> None:
    assert box.list() == []
    done = box.run("1")
    (context,) = box.list()
    assert context["id"] == done["context_id"]
    assert (context["default"], context["language"], context["state"], context["queued"]) == (True, "python", "idle", 0)
    assert box.run("2")["context_id"] == context["id"]
    box.run("echo", language="bash")
    assert [entry["language"] for entry in box.list()] == ["python", "bash"]


def test_a_context_has_variables_of_its_own(common: Box) -> None:
    one, other = common.make(), common.make()
    assert (one["state"], one["default"]) == ("idle", False)
    assert one["started_as"] in ("plain", "forked")
    for context, value in ((one, 1), (other, 2)):
        common.run(f"mine = {value}", context_id=context["id"])
    for context, value in ((one, 1), (other, 2)):
        done = common.run("mine", context_id=context["id"])
        assert result_text(done) == str(value)
        assert done["context_id"] == context["id"]
    assert common.run("mine")["error"]["name"] == "NameError"
    for context in (one, other):
        assert common.delete(context["id"]) == 204


@pytest.mark.parametrize("language", ["python", "javascript", "typescript", "bash"])
def test_each_language_has_contexts(language: str, common: Box) -> None:
    context = common.make(language=language, cwd="/tmp", env={"MINE": HOSTILE})
    assert (context["language"], context["cwd"]) == (language, "/tmp")
    code = {
        "python": "import os; print(os.environ['MINE'], end=''); print('|', os.getcwd())",
        "javascript": "process.stdout.write(process.env.MINE); console.log('|', process.cwd())",
        "typescript": "process.stdout.write(process.env.MINE as string); console.log('|', process.cwd())",
        "bash": "printf '%s' \"$MINE\"; echo '|' \"$PWD\"",
    }[language]
    assert common.run(code, context_id=context["id"])["stdout"]["text"] == f"{HOSTILE}| /tmp\n"
    assert common.delete(context["id"]) == 204


def test_its_environment_comes_before_that_of_the_sandbox(client: httpx.Client) -> None:
    made = create_sandbox(client, env={"BOTH": "sandbox", "ONE": "sandbox"})
    box = Box(client, made["id"])
    context = box.make(language="bash", env={"BOTH": "context"})
    assert box.run("echo $BOTH $ONE", context_id=context["id"])["stdout"]["text"] == "context sandbox\n"
    assert box.run("echo $BOTH $ONE", language="bash")["stdout"]["text"] == "sandbox sandbox\n"
    client.delete(f"/v1/sandboxes/{made['id']}")


@pytest.mark.parametrize("language", ["python", "javascript", "bash"])
def test_the_environment_of_a_run_is_put_back(language: str, common: Box) -> None:
    context = common.make(language=language, env={"KEPT": "old"})
    show = {
        "python": "import os; print(os.environ.get('KEPT'), os.environ.get('NEW'), sep='~')",
        "javascript": "console.log([process.env.KEPT, process.env.NEW].map(x => x ?? 'None').join('~'))",
        "bash": 'echo "${KEPT-None}~${NEW-None}"',
    }[language]
    given = {"KEPT": "new", "NEW": HOSTILE}
    assert common.run(show, context_id=context["id"], env=given)["stdout"]["text"] == f"new~{HOSTILE}\n"
    assert common.run(show, context_id=context["id"])["stdout"]["text"] == "old~None\n"
    assert common.delete(context["id"]) == 204


def test_restart_forgets_the_variables_and_keeps_the_files(box: Box) -> None:
    context = box.make(env={"MINE": "1"}, cwd="/tmp")["id"]
    box.run("kept = 1; open('note', 'w').write('here')", context_id=context)
    again = box.restart(context)
    assert (again["id"], again["state"]) == (context, "idle")
    assert box.run("kept", context_id=context)["error"]["name"] == "NameError"
    done = box.run("import os; print(os.environ['MINE'], os.getcwd(), open('note').read())", context_id=context)
    assert done["stdout"]["text"] == "1 /tmp here\n"
    assert not done["state_lost"], "who asks for a restart needs no warning"


def test_restart_ends_the_running_run_and_the_queue_goes_on(box: Box) -> None:
    context = box.make()["id"]
    running = box.begin("print('partial', flush=True); open('there', 'w').close()\nwhile True: pass", context_id=context)
    box.wait_for_file("there")
    waiting = box.begin("print('after', 'kept' in globals())", context_id=context)
    box.restart(context)
    ended = box.until(running, "ended")
    assert (ended["end_reason"], ended["stdout"]["text"]) == ("cancelled", "partial\n")
    assert ended["retryable"] and ended["state_lost"]
    after = box.until(waiting, "ended")
    assert (after["end_reason"], after["stdout"]["text"]) == ("ok", "after False\n")


def test_delete_ends_all_that_it_has(box: Box) -> None:
    context = box.make()["id"]
    code = "import subprocess; subprocess.Popen(['sleep', '987']); print('partial', flush=True)"
    running = box.begin(f"{code}; open('there', 'w').close()\nwhile True: pass", context_id=context)
    box.wait_for_file("there")
    waiting = box.begin("print('never')", context_id=context)
    assert box.delete(context) == 204
    assert box.until(running, "ended")["end_reason"] == "cancelled"
    assert box.record(running)["stdout"]["text"] == "partial\n"
    dropped = box.until(waiting, "ended")
    assert (dropped["end_reason"], dropped["stdout"]["bytes"]) == ("cancelled", 0)
    assert box.delete(context) == 404
    assert all(entry["id"] != context for entry in box.list())
    gone = "for i in $(seq 200); do pgrep -f 'sleep 987' >/dev/null || { echo gone; break; }; sleep 0.05; done"
    assert box.run(gone, language="bash")["stdout"]["text"] == "gone\n"


def test_a_deleted_default_context_comes_back_new(box: Box) -> None:
    first = box.run("x = 1")["context_id"]
    assert box.delete(first) == 204
    done = box.run("'x' in globals()")
    assert done["context_id"] != first
    assert result_text(done) == "False"


# --- The queue ---


def test_runs_of_a_context_queue_in_order_and_the_depth_is_visible(box: Box) -> None:
    context = box.make()["id"]
    begin = "import os, time; open('there', 'w').close()\nwhile not os.path.exists('go'): time.sleep(0.01)"
    running = box.begin(f"seen = []; {begin}", context_id=context)
    box.wait_for_file("there")
    waiting = [box.begin(f"seen.append({i}); print(seen)", context_id=context) for i in range(3)]
    shown = box.get(context)
    assert (shown["state"], shown["queued"], shown["run_id"]) == ("busy", 3, running)
    assert [box.record(run)["queue_position"] for run in waiting] == [1, 2, 3]
    assert "queue_position" not in box.record(running)
    # Beside it another context goes on.
    assert box.run("1+1")["end_reason"] == "ok"
    # An interrupt drops its own run only.
    assert box.client.post(f"/v1/runs/{waiting[0]}/interrupt").status_code == 202
    assert box.until(waiting[0], "ended")["end_reason"] == "interrupted"
    assert [box.record(run)["queue_position"] for run in waiting[1:]] == [1, 2]
    assert box.record(running)["state"] == "running"
    box.run("touch go", language="bash")
    assert box.until(running, "ended")["end_reason"] == "ok"
    assert [box.until(run, "ended")["stdout"]["text"] for run in waiting[1:]] == ["[1]\n", "[1, 2]\n"]


def test_an_interrupt_of_the_running_run_leaves_those_that_wait(box: Box) -> None:
    context = box.make()["id"]
    running = box.begin("kept = 5; open('there', 'w').close()\nwhile True: pass", context_id=context)
    box.wait_for_file("there")
    waiting = box.begin("print(kept)", context_id=context)
    box.client.post(f"/v1/runs/{running}/interrupt")
    assert box.until(running, "ended")["end_reason"] == "interrupted"
    assert box.until(waiting, "ended")["stdout"]["text"] == "5\n"


# --- What is refused ---


def refused(box: Box, path: str, body: dict[str, Any], status: int, *words: str) -> None:
    answer = box.client.post(box.path + path, json=body)
    assert answer.status_code == status, answer.text
    for word in words:
        assert word in answer.text


def test_bad_requests_name_the_field(common: Box) -> None:
    refused(common, "/contexts", {"language": "cobol"}, 422, '"field":"language"', "python")
    refused(common, "/contexts", {"cwd": ""}, 422, '"field":"cwd"')
    refused(common, "/contexts", {"env": {"A": "x\0y"}}, 422, '"field":"env.A"')
    refused(common, "/contexts", {"env": {"A=B": "x"}}, 422, '"field":"env"')
    refused(common, "/contexts", {"colour": "red"}, 422, '"field":"colour"')
    refused(common, "/runs", {"code": "1", "context_id": "a" * 20}, 404, "contexts")
    refused(common, "/runs", {"code": "1", "context_id": "nothing"}, 404, "context")
    refused(common, "/runs", {"code": "1", "env": {"A": "x\0y"}}, 422, '"field":"env.A"')


def test_a_language_that_contradicts_the_context_is_refused(common: Box) -> None:
    context = common.make(language="bash")["id"]
    refused(common, "/runs", {"code": "1", "context_id": context, "language": "python"}, 422, '"field":"language"')
    assert common.run("echo hi", context_id=context, language="bash")["stdout"]["text"] == "hi\n"
    assert common.delete(context) == 204


def test_an_interpreter_that_cannot_start_leaves_no_context(common: Box) -> None:
    before = [entry["id"] for entry in common.list()]
    refused(common, "/contexts", {"cwd": "/no/such/place"}, 409, "could not be started", "working directory")
    assert [entry["id"] for entry in common.list()] == before


def test_the_context_of_another_sandbox_is_not_found(common: Box, box: Box) -> None:
    context = box.make(language="bash")["id"]
    assert common.delete(context) == 404
    refused(common, "/runs", {"code": "1", "context_id": context}, 404)


# --- Many ---


@pytest.fixture
def roomy(client: httpx.Client) -> Iterator[Box]:
    made = create_sandbox(client, memory_mb=4096)
    yield Box(client, made["id"])
    client.delete(f"/v1/sandboxes/{made['id']}")


def test_a_hundred_contexts_leak_nothing_into_each_other(roomy: Box) -> None:
    """Ten of Python, ninety of Bash: variables, environment, working directory, descriptors."""
    languages = ["python"] * 10 + ["bash"] * 90
    begin: dict[str, str] = {
        "python": "import os; os.mkdir('/tmp/d{0}'); os.chdir('/tmp/d{0}'); os.environ['MINE'] = '{0}'; mine = {0}",
        "bash": "mkdir /tmp/d{0}; cd /tmp/d{0}; export MINE={0}; mine={0}; exec 9>log",
    }
    show: dict[str, str] = {
        "python": "print(mine, os.environ['MINE'], os.getcwd(), os.path.exists('/proc/self/fd/9'))",
        "bash": 'echo "$mine" "$MINE" "$PWD" "$([[ -e /proc/$$/fd/9 ]] && echo True)"',
    }
    with ThreadPoolExecutor(4) as pool:
        contexts = list(pool.map(lambda language: roomy.make(language=language)["id"], languages))

        def each(code: Callable[[int], str]) -> list[dict[str, Any]]:
            return list(pool.map(lambda i: roomy.run(code(i), context_id=contexts[i]), range(len(contexts))))

        assert {done["end_reason"] for done in each(lambda i: begin[languages[i]].format(i))} == {"ok"}
        shown = [done["stdout"]["text"] for done in each(lambda i: show[languages[i]])]
    assert shown == [f"{i} {i} /tmp/d{i} {languages[i] == 'bash'}\n" for i in range(len(contexts))]
    assert len(roomy.list()) == len(contexts)
    # The bound, and that deleting makes room.
    bound = next(
        row["value"] for row in roomy.client.get("/v1/limits").json()["limits"] if row["name"] == "contexts"
    )
    for _ in range(bound - len(contexts)):
        roomy.make(language="bash")
    refused(roomy, "/contexts", {"language": "bash"}, 429, "delete some")
    assert roomy.delete(contexts[-1]) == 204
    roomy.make(language="bash")
