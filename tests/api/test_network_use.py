"""What people do with a network: install packages from the registries of this machine, and hear what is missing without one.

The registries' names come from this machine's pip and npm, their addresses from its resolver, when the test runs.
"""

from __future__ import annotations

import functools
import os
import socket
import ssl
import subprocess
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import Cli, create_sandbox, new_client, runner
from service import Build, Service, running

pytestmark = pytest.mark.here(lambda: os.geteuid() == 0, "sandboxes ask for root")


def _says(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


@functools.cache
def pip_hosts() -> list[str]:
    index = _says("/usr/bin/python3", "-m", "pip", "config", "get", "global.index-url")
    if index:
        return [str(urllib.parse.urlsplit(index).hostname)]
    usual = "from pip._internal.models.index import PyPI; print(PyPI.netloc, PyPI.file_storage_domain)"
    return _says("/usr/bin/python3", "-c", usual).split()


@functools.cache
def npm_hosts() -> list[str]:
    return [str(urllib.parse.urlsplit(_says("npm", "config", "get", "registry")).hostname)]


def addresses(hosts: list[str]) -> list[str]:
    return sorted({str(info[4][0]) for host in hosts for info in socket.getaddrinfo(host, 443, type=socket.SOCK_STREAM)})


@functools.cache
def reachable(kind: str) -> bool:
    """Whether this machine itself reaches its registry."""
    try:
        hosts = {"pip": pip_hosts, "npm": npm_hosts}[kind]()
        for host in hosts:
            socket.create_connection((host, 443), timeout=10).close()
        return bool(hosts)
    except OSError:
        return False


@pytest.fixture(scope="module")
def registry_server(build: Build, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = Service(build)
    for kind, hosts in (("pip", pip_hosts), ("npm", npm_hosts)):
        for address in addresses(hosts()) if reachable(kind) else []:
            service.options += ["--platform-allow", address]
    bundle = ssl.get_default_verify_paths().cafile or ssl.get_default_verify_paths().openssl_cafile
    service.options += ["--ca-bundle", str(Path(bundle).resolve())]
    with running(service) as started:
        yield started


@pytest.fixture(scope="module")
def registry_client(registry_server: Service) -> Iterator[httpx.Client]:
    with new_client(registry_server, Authorization=f"Bearer {registry_server.key}") as http:
        yield http


@pytest.fixture
def box(registry_client: httpx.Client) -> Iterator[Any]:
    made: list[dict[str, Any]] = []

    def make(**fields: Any) -> Any:
        made.append(create_sandbox(registry_client, **fields))
        return runner(registry_client, made[-1], language="bash", timeout_ms=90_000)

    yield make
    for sandbox in made:
        registry_client.delete(f"/v1/sandboxes/{sandbox['id']}")


@pytest.mark.here(lambda: reachable("pip"), "this machine does not reach its Python package index")
def test_pip_install_with_only_the_index_allowed(box: Any) -> None:
    run = box(network={"allow_out": pip_hosts()})
    done = run("pip install --quiet --no-cache-dir --target /tmp/got six && PYTHONPATH=/tmp/got python3 -c 'import six; print(six.__name__)'")
    assert done["stdout"]["text"].splitlines()[-1:] == ["six"], (done["stdout"], done["stderr"])
    other = run("python3 -c 'import urllib.request as u; u.urlopen(\"https://elsewhere.example\", timeout=9)'")
    assert "Name or service not known" in other["stderr"]["text"]


@pytest.mark.here(lambda: reachable("npm"), "this machine does not reach its npm registry")
def test_npm_install_with_only_the_registry_allowed(box: Any) -> None:
    run = box(network={"allow_out": npm_hosts()})
    registry = _says("npm", "config", "get", "registry")
    done = run(f"cd /tmp && npm install --silent --no-audit --no-fund --registry={registry} is-number && node -e 'console.log(require(\"is-number\")(5))'")
    assert done["stdout"]["text"].splitlines()[-1:] == ["true"], (done["stdout"], done["stderr"])


def test_without_a_network_installs_fail_and_say_so(box: Any) -> None:
    run = box()
    done = run("pip install --retries 0 --no-cache-dir --target /tmp/got six")
    assert done["exit_code"] != 0
    assert "No matching distribution found" in done["stderr"]["text"]
    done = run("cd /tmp && npm install --fetch-retries=0 is-number")
    assert done["exit_code"] != 0
    assert "EAI_AGAIN" in done["stderr"]["text"] or "ENOTFOUND" in done["stderr"]["text"]


def test_the_operators_certificates_are_trusted_by_default(box: Any) -> None:
    run = box(env={"PIP_CERT": "/mine.pem"})
    done = run("echo $SSL_CERT_FILE $PIP_CERT $NODE_EXTRA_CA_CERTS; grep -c BEGIN $REQUESTS_CA_BUNDLE; touch $SSL_CERT_FILE")
    lines = done["stdout"]["text"].splitlines()
    assert lines[0] == "/opt/cloister/etc/ca-bundle.pem /mine.pem /opt/cloister/etc/ca-bundle.pem"
    assert int(lines[1]) > 1
    assert "Read-only" in done["stderr"]["text"] or "denied" in done["stderr"]["text"]


# --- the command line ---


def test_a_failed_connection_names_the_flag(cli: Cli) -> None:
    for code in ("import socket; socket.create_connection(('198.18.77.10', 80))", "import nothing_of_that_name"):
        done = cli("run", "-c", code)
        assert done.returncode != 0
        assert done.stderr.rstrip().splitlines()[-1].endswith("`--net open` all of them"), done.stderr
        assert "--allow HOST" in done.stderr
    fine = cli("run", "-c", "raise ValueError(1)")
    assert "--allow" not in fine.stderr
    opened = cli("run", "--net", "open", "-c", "import nothing_of_that_name")
    assert "--allow" not in opened.stderr


def test_flags_make_the_policy(cli: Cli) -> None:
    both = cli("run", "--net", "open", "--allow", "a.example", "-c", "1")
    assert both.returncode == 2 and "--allow" in both.stderr
    wrong = cli("run", "--allow", "10.0.0.0/8", "-c", "1")
    assert wrong.returncode == 2 and "platform_allow" in wrong.stderr
    good = cli("run", "--allow", "a.example", "--allow", "*.b.example", "-c", "print(1)")
    assert (good.returncode, good.stdout) == (0, "1\n")


def test_net_shows_the_log(cli: Cli, client: httpx.Client) -> None:
    sandbox = create_sandbox(client, network={"allow_out": ["a.example"]})
    run = runner(client, sandbox)
    run("import socket\ntry:\n    socket.getaddrinfo('b.example', 80)\nexcept OSError: pass")
    shown = cli("net", sandbox["id"])
    assert shown.returncode == 0, shown.stderr
    assert 'network: {"mode":"filtered","allow_out":["a.example"],"deny_out":[]}' in shown.stdout
    assert "denied" in shown.stdout and "b.example" in shown.stdout and "not in allow_out" in shown.stdout
    assert client.delete(f"/v1/sandboxes/{sandbox['id']}").status_code == 204
    assert cli("net", sandbox["id"]).returncode != 0
