"""Pause and resume: what a pause keeps (everything), what ends it (any call), and what a sandbox's life is limited by."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import Cli, Run, create_sandbox, not_here
from service import Service, processes_in_group, wait_until
from sse import read_events

WRITER = """
import subprocess, sys
code = "import time\\nwith open('/home/user/log', 'a', buffering=1) as log:\\n    n = 0\\n    while True: log.write(f'{n}\\\\n'); n += 1; time.sleep(0.002)"
writer = subprocess.Popen([sys.executable, '-c', code])
print(writer.pid)
"""


def state(client: httpx.Client, sandbox_id: str) -> str:
    answer = client.get(f"/v1/sandboxes/{sandbox_id}")
    return answer.json()["state"] if answer.status_code == 200 else "dead"


def pause(client: httpx.Client, sandbox_id: str, **fields: Any) -> httpx.Response:
    return client.post(f"/v1/sandboxes/{sandbox_id}/pause", json=fields)


def frozen_for(sandbox_id: str, seconds: float) -> bool:
    """Whether the sandbox's processes but its agent use no CPU time for so long."""

    def ticks() -> int:
        total = 0
        for pid in processes_in_group(sandbox_id):
            try:
                if f"/{sandbox_id}/user\n" in Path(f"/proc/{pid}/cgroup").read_text():
                    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                    total += int(fields[11]) + int(fields[12])
            except OSError:
                continue
        return total

    before = ticks()
    time.sleep(seconds)
    return ticks() == before


def test_everything_is_there_after_a_pause(client: httpx.Client, sandbox: dict[str, Any], run: Run) -> None:
    run("import os; x = 20; child = os.popen('sleep 1000; echo never'); r, w = os.pipe(); os.write(w, b'in the pipe')")
    paused = pause(client, sandbox["id"])
    assert (paused.status_code, paused.json()["state"]) == (200, "paused")
    assert "paused_at" in paused.json()
    assert pause(client, sandbox["id"]).status_code == 200, "it is paused already"
    assert [one["state"] for one in client.get("/v1/sandboxes").json()["sandboxes"] if one["id"] == sandbox["id"]] == ["paused"]
    done = run("print(x + 1, os.read(r, 99).decode())")
    assert (done["stdout"]["text"], done["state_lost"]) == ("21 in the pipe\n", False)
    assert state(client, sandbox["id"]) == "running"


def test_nothing_runs_while_it_is_paused(client: httpx.Client, sandbox: dict[str, Any], run: Run) -> None:
    run("import threading\nn = 0\ndef count():\n    global n\n    while True: n += 1\nthreading.Thread(target=count, daemon=True).start()")
    assert not frozen_for(sandbox["id"], 0.3)
    assert pause(client, sandbox["id"]).status_code == 200
    assert frozen_for(sandbox["id"], 0.3)


@pytest.mark.parametrize("call", ["resume", "run", "write", "read", "context"])
def test_every_call_lets_it_go_on(call: str, client: httpx.Client, sandbox: dict[str, Any], run: Run) -> None:
    path = f"/v1/sandboxes/{sandbox['id']}"
    client.put(path + "/files", params={"path": "a"}, content=b"text").raise_for_status()
    assert pause(client, sandbox["id"]).status_code == 200
    if call == "resume":
        assert client.post(path + "/resume").json()["state"] == "running"
    if call == "run":
        assert run("1")["end_reason"] == "ok"
    if call == "write":
        client.put(path + "/files", params={"path": "b"}, content=b"text").raise_for_status()
    if call == "read":
        assert client.get(path + "/files", params={"path": "a"}).content == b"text"
    if call == "context":
        assert client.post(path + "/contexts", json={"language": "bash"}).status_code == 201
    assert state(client, sandbox["id"]) == "running"


def test_looking_at_it_does_not_wake_it(client: httpx.Client, sandbox: dict[str, Any], run: Run) -> None:
    run("1")
    pause(client, sandbox["id"]).raise_for_status()
    assert len(client.get(f"/v1/sandboxes/{sandbox['id']}/contexts").json()["contexts"]) == 1
    assert state(client, sandbox["id"]) == "paused"


def test_a_pause_during_a_run_is_refused_or_waits(client: httpx.Client, sandbox: dict[str, Any]) -> None:
    path = f"/v1/sandboxes/{sandbox['id']}/runs"
    begun = client.post(path, json={"code": "import time; time.sleep(1); print('whole')", "wait": False}).json()
    refused = pause(client, sandbox["id"])
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "failed_precondition")
    assert pause(client, sandbox["id"], when_busy="wait").json()["state"] == "paused"
    ended = client.get(f"/v1/runs/{begun['id']}").json()
    assert (ended["end_reason"], ended["stdout"]["text"]) == ("ok", "whole\n")
    assert pause(client, sandbox["id"], when_busy="now").status_code == 422


def test_a_timeout_does_not_run_over_a_pause(client: httpx.Client, sandbox: dict[str, Any], run: Run) -> None:
    run("import time, threading\nbegan = time.time()")
    pause(client, sandbox["id"]).raise_for_status()
    time.sleep(1.5)
    done = run("time.sleep(0.5); print(time.time() - began > 1.4)", timeout_ms=1_000)
    assert (done["end_reason"], done["stdout"]["text"]) == ("ok", "True\n")


def test_a_paused_one_is_deleted_at_once(client: httpx.Client) -> None:
    made = create_sandbox(client)["id"]
    client.post(f"/v1/sandboxes/{made}/runs", json={"code": "1"}).raise_for_status()
    pause(client, made).raise_for_status()
    begin = time.monotonic()
    assert client.delete(f"/v1/sandboxes/{made}").status_code == 204
    assert time.monotonic() - begin < 3
    assert state(client, made) == "dead"
    assert processes_in_group(made) == []
    assert pause(client, made).status_code == 404


@pytest.mark.parametrize("program", ["cloisterd", "cloister-warden"])
def test_a_pause_outlives_our_programs(
    program: str, server: Service, client: httpx.Client, sandbox: dict[str, Any], run: Run
) -> None:
    run("x = 7")
    pause(client, sandbox["id"]).raise_for_status()
    server.kill(program)
    assert state(client, sandbox["id"]) == "paused"
    done = run("x")
    assert (done["results"][0]["data"]["text/plain"], done["state_lost"]) == ("7", False)


def test_twenty_pauses_with_a_writer_lose_nothing(client: httpx.Client, sandbox: dict[str, Any], run: Run) -> None:
    """Files, a package that was installed, and a process that writes all the time."""
    install = "import pathlib, sys, site\nplace = pathlib.Path(site.getusersitepackages(), 'mine')\nplace.mkdir(parents=True)\n"
    run(install + "(place / '__init__.py').write_text('answer = 42')\nprint(place)")
    writer = int(run(WRITER)["stdout"]["text"])
    for cycle in range(20):
        pause(client, sandbox["id"]).raise_for_status()
        done = run(f"open('/home/user/{cycle}', 'w').write('x' * 1000); import os; os.kill({writer}, 0); print({cycle})")
        assert (done["stdout"]["text"], done["state_lost"]) == (f"{cycle}\n", False)
    check = f"""
import os, signal, subprocess, sys
os.kill({writer}, signal.SIGTERM)
lines = [int(line) for line in open('/home/user/log').read().splitlines()]
print(lines == list(range(len(lines))), all(os.path.getsize(f'/home/user/{{n}}') == 1000 for n in range(20)),
      subprocess.check_output([sys.executable, '-c', 'import mine; print(mine.answer)'], text=True).strip())
"""
    assert run(check)["stdout"]["text"] == "True True 42\n"


def test_idle_means_paused_by_default(client: httpx.Client, sandbox: dict[str, Any]) -> None:
    path = f"/v1/sandboxes/{sandbox['id']}"
    assert sandbox["on_idle"] == "pause"
    run = client.post(path + "/runs", json={"code": "x = 5"}).json()
    assert run["end_reason"] == "ok"
    assert client.patch(path, json={"idle_timeout_seconds": 1}).json()["idle_timeout_seconds"] == 1
    wait_until(lambda: state(client, sandbox["id"]) == "paused", 10, "it is paused")
    done = client.post(path + "/runs", json={"code": "x"}).json()
    assert done["results"][0]["data"]["text/plain"] == "5"


def test_work_in_the_background_is_no_idleness(client: httpx.Client) -> None:
    made = create_sandbox(client, idle_timeout_seconds=1, on_idle="kill")["id"]
    busy = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'while True: pass'])"
    client.post(f"/v1/sandboxes/{made}/runs", json={"code": busy}).raise_for_status()
    for _ in range(30):
        assert state(client, made) == "running"
        time.sleep(0.1)
    client.delete(f"/v1/sandboxes/{made}").raise_for_status()


def test_never_expires(client: httpx.Client) -> None:
    made = create_sandbox(client, idle_timeout_seconds=None, on_idle="kill")
    assert (made["idle_timeout_seconds"], made["on_idle"]) == (None, "pause")
    client.delete(f"/v1/sandboxes/{made['id']}").raise_for_status()


def test_a_deadline_moves_either_way_and_kills(client: httpx.Client) -> None:
    made = create_sandbox(client, deadline_seconds=1)
    path = f"/v1/sandboxes/{made['id']}"
    assert made["on_deadline"] == "kill"
    later = client.patch(path, json={"deadline_seconds": 600}).json()["deadline"]
    assert later > made["deadline"]
    time.sleep(1.5)
    assert state(client, made["id"]) == "running"
    assert "deadline" not in client.patch(path, json={"deadline_seconds": None}).json()
    began = client.post(path + "/runs", json={"code": "import time; time.sleep(60)", "wait": False}).json()
    client.patch(path, json={"deadline_seconds": 0}).raise_for_status()
    wait_until(lambda: state(client, made["id"]) == "dead", 5, "it is dead")
    assert client.get(path).json()["end_reason"] == "deadline"
    wait_until(lambda: client.get(f"/v1/runs/{began['id']}").json().get("end_reason") == "cancelled", 5, "its run has ended")


def test_a_deadline_may_pause(client: httpx.Client) -> None:
    made = create_sandbox(client, deadline_seconds=1, on_deadline="pause")["id"]
    wait_until(lambda: state(client, made) == "paused", 10, "it is paused")
    done = client.post(f"/v1/sandboxes/{made}/runs", json={"code": "print('on')"}).json()
    assert done["stdout"]["text"] == "on\n"
    assert state(client, made) == "running"
    client.delete(f"/v1/sandboxes/{made}").raise_for_status()


@pytest.mark.parametrize("form", ["text/event-stream", "application/x-ndjson"])
def test_events_tell_the_life_of_a_sandbox(form: str, client: httpx.Client) -> None:
    made = create_sandbox(client, deadline_seconds=4)["id"]
    told: list[tuple[str, Any]] = []

    def read() -> None:
        with client.stream("GET", f"/v1/sandboxes/{made}/events", headers={"Accept": form}) as answer:
            if form == "text/event-stream":
                told.extend((event.type, event.data) for event in read_events(answer.iter_bytes()))
            else:
                for line in answer.iter_lines():
                    event = json.loads(line)
                    told.append((event["event"], event.get("data")))

    reader = threading.Thread(target=read)
    reader.start()
    pause(client, made).raise_for_status()
    client.post(f"/v1/sandboxes/{made}/runs", json={"code": "1"}).raise_for_status()
    reader.join(20)
    assert not reader.is_alive()
    kinds = [kind for kind, _ in told if kind != "heartbeat"]
    assert kinds == ["created", "paused", "resumed", "ending_soon", "ended"]
    assert told[1][1]["reason"] == "asked" and told[2][1]["reason"] == "call"
    assert told[-2][1]["reason"] == "deadline" and told[-1][1]["reason"] == "deadline"
    assert all("at" in data for _, data in told)


def test_the_host_says_what_a_pause_gives_back(client: httpx.Client, request: pytest.FixtureRequest) -> None:
    all_of_it = client.get("/v1/capabilities").json()
    checks = {check["name"]: check["state"] for check in all_of_it["pause"]}
    assert checks["pause"] == "enforced"
    swap = int(next(line.split()[1] for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("SwapTotal")))
    assert all_of_it["pause_reclaims"] == (swap > 0)
    if swap == 0:
        not_here(request.config, "the memory of paused sandboxes in the swap: this host has none")


def test_the_command_line(client: httpx.Client, cli: Cli, sandbox: dict[str, Any]) -> None:
    name = sandbox["id"]
    assert json.loads(cli("pause", name, "--json").stdout)["state"] == "paused"
    assert [line.split()[1] for line in cli("ps").stdout.splitlines() if line.startswith(name)] == ["paused"]
    assert cli("resume", name).stdout == name + "\n"
    listed = json.loads(cli("ps", "--json").stdout)["sandboxes"]
    assert [one["state"] for one in listed if one["id"] == name] == ["running"]
    assert cli("kill", name).returncode == 0
    assert state(client, name) == "dead"
    assert cli("pause", name).returncode != 0
    assert cli("pause", "no id").returncode != 0


def test_a_paused_sandbox_is_found_again_after_a_stop_of_the_service(build: Any) -> None:
    _reboot(build, graceful=True, reason="service_stopped")


def test_after_a_reboot_sandboxes_are_paused_with_their_files(build: Any) -> None:
    """C04. All processes are killed and the pool is mounted anew, under another boot id."""
    _reboot(build, graceful=False, reason="host_reboot")


def _reboot(build: Any, graceful: bool, reason: str) -> None:
    from conftest import new_client
    from service import running

    with running(Service(build)) as service:
        with new_client(service, Authorization=f"Bearer {service.key}") as client:
            made = create_sandbox(client)["id"]
            path = f"/v1/sandboxes/{made}"
            client.put(path + "/files", params={"path": "kept"}, content=b"kept").raise_for_status()
            code = "x = 1; open('/home/user/by code', 'w').write('too')"
            client.post(path + "/runs", json={"code": code}).raise_for_status()
            if graceful:
                pause(client, made).raise_for_status()
        if graceful:
            assert service.stop() == 0
            assert service.leftovers() == []
            service.serve()
        else:
            crash(service)
        for again in range(2):
            with new_client(service, Authorization=f"Bearer {service.key}") as client:
                shown = client.get(path).json()
                assert (shown["state"], shown["state_lost"]) == ("paused", reason)
                if again == 0:
                    service.kill("cloister-warden")
                    service.kill("cloisterd")
                    continue
                assert client.get(path + "/files", params={"path": "kept"}).content == b"kept"
                done = client.post(path + "/runs", json={"code": "import os; print(open('by code').read(), 'x' in dir())"}).json()
                assert (done["stdout"]["text"], done["state_lost"], done["state_lost_reason"]) == ("too False\n", True, reason)
                assert client.post(path + "/runs", json={"code": "1"}).json()["state_lost"] is False
                assert client.delete(path).status_code == 204


def crash(service: Service) -> None:
    """What a power cut leaves: no process, no mount, no cgroup, the files, and another boot."""
    import os
    import signal

    supervisor = service._supervisor
    assert supervisor is not None
    service._supervisor = None
    supervisor.kill()
    supervisor.wait()
    service.kill_rest()
    for pid in processes_in_group(service.group_name()):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    wait_until(lambda: not processes_in_group(service.group_name()) and not service.programs(), 20, "all of them are gone")
    (service.data / "state" / "boot_id").write_text("the boot before\n")
    service.serve()
