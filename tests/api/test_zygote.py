"""Forked interpreters: what they share (nothing), what works in them (everything), and when one is started instead."""

from __future__ import annotations

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from conftest import create_sandbox
from service import nest_of, wait_until, zygotes

RANDOM = """
import json, os, random, secrets, ssl, tempfile, uuid
import numpy as np
print(json.dumps([random.random(), float(np.random.rand()), float(np.random.default_rng().random()), secrets.token_hex(),
                  str(uuid.uuid4()), str(uuid.uuid1()), ssl.RAND_bytes(16).hex(), next(tempfile._get_candidate_names()),
                  os.urandom(8).hex()]))
"""
WORK = {
    "threads": "import threading\nt = threading.Thread(target=lambda: print('done'))\nt.start(); t.join()",
    "asyncio": "import asyncio\nawait asyncio.sleep(0.01)\nprint('done')",
    "subprocess": "import subprocess\nprint(subprocess.check_output(['echo', 'done'], text=True), end='')",
    "multiprocessing": "import multiprocessing as m\nwith m.get_context('fork').Pool(2) as pool:\n"
    "    print('done' if pool.map(abs, [-1, -2]) == [1, 2] else 'wrong')",
    "linear algebra": "import numpy as np\na = np.random.rand(600, 600)\n"
    "print('done' if np.allclose(a @ np.linalg.inv(a), np.eye(600)) else 'wrong')",
    "pandas": "import pandas as pd\nprint('done' if pd.DataFrame({'a': [1, 2]}).a.sum() == 3 else 'wrong')",
    "os.fork": "import os\npid = os.fork()\nif pid == 0:\n    os._exit(3)\n"
    "print('done' if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3 else 'wrong')",
}


def run(client: httpx.Client, sandbox_id: str, code: str) -> dict[str, Any]:
    answer = client.post(f"/v1/sandboxes/{sandbox_id}/runs", json={"code": code})
    assert answer.status_code == 200, answer.text
    return answer.json()


def out(done: dict[str, Any]) -> str:
    assert done["end_reason"] == "ok", (done.get("error"), done["message"], done["stderr"])
    return done["stdout"]["text"]


def delete(client: httpx.Client, sandbox_id: str) -> None:
    assert client.delete(f"/v1/sandboxes/{sandbox_id}").status_code == 204


def forks_now(client: httpx.Client) -> bool:
    made = create_sandbox(client)["id"]
    done = run(client, made, "1")
    delete(client, made)
    return done["started_as"] == "forked"


def zygote_of(sandbox: str) -> int:
    """That of its nest: other templates have other ones."""
    return zygotes(nest_of(sandbox))[0]


@pytest.fixture
def forking(client: httpx.Client) -> None:
    """The zygote of the project is there."""
    wait_until(lambda: forks_now(client), 120, "interpreters are forked")


@pytest.fixture
def forked(client: httpx.Client, forking: None) -> Any:
    """A sandbox whose interpreter was forked."""
    for _ in range(5):  # a machine that is very busy may start one instead
        made = create_sandbox(client)["id"]
        if run(client, made, "1")["started_as"] == "forked":
            yield made
            client.delete(f"/v1/sandboxes/{made}")  # a test may have done it
            return
        delete(client, made)
    pytest.fail("no interpreter was forked")


@pytest.mark.parametrize("name", WORK)
def test_what_works_in_a_forked_interpreter(name: str, client: httpx.Client, forked: str) -> None:
    done = run(client, forked, WORK[name])
    assert out(done) == "done\n"
    assert done["stderr"]["text"] == ""


def test_charts(client: httpx.Client, forked: str) -> None:
    done = run(client, forked, "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()")
    assert done["end_reason"] == "ok", done
    assert [set(shown["data"]) >= {"image/png"} for shown in done["results"]] == [True]


def test_the_threads_of_linear_algebra_follow_the_cpus(client: httpx.Client, forking: None) -> None:
    code = (
        "import numpy as np, os\na = np.random.rand(700, 700)\na @ a\n"
        "print(len(os.listdir('/proc/self/task')) == len(os.sched_getaffinity(0)))"
    )
    for cpu in (1, 2):
        made = create_sandbox(client, cpu=cpu)["id"]
        assert out(run(client, made, code)) == "True\n"
        delete(client, made)


def test_nothing_random_is_shared(client: httpx.Client, forking: None) -> None:
    made = [create_sandbox(client)["id"] for _ in range(3)]
    seen = [set(json.loads(out(run(client, one, RANDOM)))) for one in made]
    assert not seen[0] & seen[1] and not seen[0] & seen[2] and not seen[1] & seen[2]
    for one in made:
        delete(client, one)


def test_libraries_know_that_they_are_in_a_notebook(client: httpx.Client, forked: str) -> None:
    """What pandas decides when it is imported: here in a cell, there in the zygote."""
    code = "import pandas; print({name: pandas.get_option(name) for name in ('display.max_columns', 'display.width')})"
    plain = create_sandbox(client, env={"OMP_NUM_THREADS": "2"})["id"]
    assert out(run(client, forked, code)) == out(run(client, plain, code)) == "{'display.max_columns': 20, 'display.width': 80}\n"


def test_it_looks_like_one_that_was_started(client: httpx.Client, forked: str) -> None:
    """Environment, descriptors, parent, limits, rights, working directory, arguments: letter by letter."""
    code = """
import json, os, resource, sys
status = [line for line in open('/proc/self/status') if line.split(':')[0] in
          ('Uid', 'Gid', 'Groups', 'CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb', 'NoNewPrivs', 'Seccomp',
           'Seccomp_filters', 'SigBlk', 'SigIgn', 'Umask')]
limits = [resource.getrlimit(getattr(resource, name)) for name in sorted(dir(resource)) if name.startswith('RLIMIT_')]
print(json.dumps([dict(os.environ), sorted(int(fd) for fd in os.listdir('/proc/self/fd')), os.getppid(), os.getcwd(),
    sys.argv, sys.path, open('/proc/self/cmdline').read(), open('/proc/self/comm').read(), status, limits,
    sorted(os.sched_getaffinity(0)), os.getpgrp() == os.getpid() == os.getsid(0), os.nice(0), sys.flags.__repr__(),
    open('/proc/self/cgroup').read(), sorted(os.listdir(os.path.expanduser('~'))), sys.stdin.isatty(), os.umask(18)]))
"""
    plain = create_sandbox(client, env={"OMP_NUM_THREADS": "2"})["id"]
    started = run(client, plain, "import os; del os.environ['OMP_NUM_THREADS']")
    assert started["started_as"] == "plain"
    assert out(run(client, forked, code)) == out(run(client, plain, code))
    delete(client, plain)


@pytest.mark.parametrize("name", ["PYTHONHASHSEED", "LD_LIBRARY_PATH", "MPLBACKEND", "TZ", "LC_ALL", "OPENBLAS_NUM_THREADS"])
def test_an_environment_that_is_read_at_start(name: str, client: httpx.Client, forking: None) -> None:
    made = create_sandbox(client, env={name: "C" if name == "LC_ALL" else "1" if name != "MPLBACKEND" else "agg"})["id"]
    assert run(client, made, "1")["started_as"] == "plain"
    delete(client, made)


def test_any_other_environment(client: httpx.Client, forking: None) -> None:
    made = create_sandbox(client, env={"GREETING": 'a "b"\n\\ü'})["id"]
    done = run(client, made, "import os\nprint(os.environ['GREETING'])\nprint(os.popen('echo $GREETING').read())")
    assert out(done).startswith('a "b"\n\\ü\n')
    delete(client, made)


@pytest.mark.parametrize(
    "path", ["/home/user/.local/lib/python3.13/site-packages/pandas/__init__.py", "numpy.py", "matplotlibrc"]
)
def test_what_a_sandbox_brings_along_wins(path: str, client: httpx.Client, forking: None) -> None:
    made = create_sandbox(client)["id"]
    content = b"timezone: UTC\n" if path == "matplotlibrc" else b"mine = True\n"
    answer = client.put(f"/v1/sandboxes/{made}/files", params={"path": path}, content=content)
    assert answer.status_code in (200, 201, 204), answer.text
    assert run(client, made, "1")["started_as"] == "plain"
    delete(client, made)


def test_other_files_do_not_matter(client: httpx.Client, forking: None) -> None:
    made = create_sandbox(client)["id"]
    client.put(f"/v1/sandboxes/{made}/files", params={"path": "data.csv"}, content=b"1,2\n").raise_for_status()
    assert out(run(client, made, "print(open('data.csv').read())")) == "1,2\n\n"
    delete(client, made)


def test_a_zygote_that_is_killed_costs_no_failure(client: httpx.Client, forked: str) -> None:
    old = zygote_of(forked)

    def one(number: int) -> dict[str, Any]:
        if number == 10:
            os.kill(old, signal.SIGKILL)
        made = create_sandbox(client, memory_mb=256)["id"]
        done = run(client, made, f"print({number} + 1)")
        delete(client, made)
        return done

    with ThreadPoolExecutor(4) as pool:
        ended = list(pool.map(one, range(40)))
    assert [done["stdout"]["text"] for done in ended] == [f"{number + 1}\n" for number in range(40)]
    assert {done["started_as"] for done in ended} <= {"forked", "plain"}
    wait_until(lambda: forks_now(client), 120, "there is a new zygote")
    assert zygote_of(forked) != old


def test_a_stopped_zygote_holds_nobody_up(client: httpx.Client, forked: str) -> None:
    zygote = zygote_of(forked)
    late = create_sandbox(client)["id"]
    os.kill(zygote, signal.SIGSTOP)
    try:
        begin = time.monotonic()
        delete(client, forked)
        assert time.monotonic() - begin < 5
        assert run(client, late, "1")["started_as"] == "plain"
        delete(client, late)
    finally:
        os.kill(zygote, signal.SIGCONT)
    assert create_sandbox(client)["id"]
