"""What is in force is told, and what is asked for and absent is refused."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import Cli
from service import Build, Service, running

LIMITS = {"memory", "pids", "cpu", "disk", "disk_throughput", "cpu_weight", "oom_kill", "quick_moves"}


def ids(client: httpx.Client) -> set[str]:
    return {sandbox["id"] for sandbox in client.get("/v1/sandboxes").json()["sandboxes"]}


def by_name(checks: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {check["name"]: check for check in checks}


def test_capabilities_tell_what_is_in_force(client: httpx.Client) -> None:
    answer = client.get("/v1/capabilities").json()
    limits, isolation = by_name(answer["limits"]), by_name(answer["isolation"])
    assert limits.keys() == LIMITS
    for name in ("memory", "pids", "cpu", "disk", "oom_kill"):
        assert limits[name]["state"] == "enforced", limits[name]
    assert isolation.keys() == {"kernel", "user_namespaces", "seccomp", "landlock"}
    assert isolation["seccomp"]["state"] == "enforced"
    for check in [*limits.values(), *isolation.values(), *answer["tiers"]]:
        assert check["detail"]
        if check["state"] == "unsupported":
            assert check["way_out"], check
    if answer["cgroups"] != "v2":
        assert "direct I/O only" in limits["disk_throughput"]["detail"]
    assert by_name(answer["tiers"])["microvm"]["state"] == "unsupported"


def test_capabilities_and_status_agree(client: httpx.Client) -> None:
    status = client.get("/v1/status").json()["limits"]
    capabilities = by_name(client.get("/v1/capabilities").json()["limits"])
    assert status == {name: check["state"] for name, check in capabilities.items()}


@pytest.mark.parametrize("tier", ["gvisor", "microvm", "fortress", ""])
def test_an_absent_tier_is_refused(tier: str, client: httpx.Client) -> None:
    before = ids(client)
    answer = client.post("/v1/sandboxes", json={"tier": tier})
    assert (answer.status_code, answer.json()["error"]["field"]) == (422, "tier")
    answer = client.post("/v1/runs", json={"code": "1", "sandbox": {"tier": tier}})
    assert (answer.status_code, answer.json()["error"]["field"]) == (422, "sandbox.tier")
    assert ids(client) <= before, "none was made; one of an earlier test may have gone"


def test_the_tier_that_exists_is_named(client: httpx.Client) -> None:
    answer = client.post("/v1/sandboxes", json={"tier": "namespace"})
    assert (answer.status_code, answer.json()["tier"]) == (201, "namespace")
    client.delete(f"/v1/sandboxes/{answer.json()['id']}")


def test_doctor_tells_the_same(cli: Cli, client: httpx.Client) -> None:
    done = cli("doctor", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == client.get("/v1/capabilities").json()
    text = cli("doctor")
    assert "+ memory" in text.stdout
    assert "- gvisor" in text.stdout


def test_doctor_without_a_service(cli: Cli, tmp_path: Path) -> None:
    done = cli("doctor", "--json", CLOISTER_DATA=str(tmp_path))
    answer = json.loads(done.stdout)
    assert answer.keys() == {"service", "tiers", "isolation"}
    assert "cloister serve" in answer["service"]
    assert done.returncode == 0, "this host can make sandboxes"


def serve_refuses(build: Build, *words: str) -> str:
    """`cloister serve` with these words; answers what it said when it refused."""
    service = Service(build)
    try:
        command = [
            *(build.program("cloister"), "serve", "--data", str(service.data), "--listen", "127.0.0.1:0"),
            *("--user", "64999", "--image", str(build.image), "--runtime", str(build.runtime), *words),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=service.environment())
        assert done.returncode != 0
        assert not service.leftovers()
        return done.stderr
    finally:
        service.kill_rest()
        service.remove()
        service.log.unlink(missing_ok=True)


def test_start_refuses_a_tier_that_is_not_there(build: Build) -> None:
    said = serve_refuses(build, "--min-tier", "microvm")
    assert "microvm" in said
    assert "not built into this version" in said


def test_start_refuses_an_unknown_limit(build: Build) -> None:
    said = serve_refuses(build, "--require-limits", "memory,bandwidth")
    assert "bandwidth" in said
    assert all(name in said for name in LIMITS), "it names those that there are"


def test_every_limit_that_is_in_force_can_be_required(build: Build, client: httpx.Client) -> None:
    checks = client.get("/v1/capabilities").json()["limits"]
    names = [check["name"] for check in checks if check["state"] == "enforced"]
    assert {"oom_kill", "memory"} <= set(names)
    service = Service(build)
    service.require_limits = names
    with running(service):
        assert httpx.get(f"{service.url}/readyz", trust_env=False).status_code == 200
