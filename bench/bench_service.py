"""The service under measurement: the release programs on a data directory of their own, with two projects."""

from __future__ import annotations

import secrets

import httpx
from attacks import add_project
from service import Build, Service


class BenchService(Service):
    """`client` is of the first project; `second_key` is the key of another."""

    def __init__(self) -> None:
        super().__init__(Build.from_environment())
        self.second_key = "e2b_" + secrets.token_hex(20)
        self.client: httpx.Client

    def __enter__(self) -> BenchService:
        self.start()
        add_project(self, self.second_key)
        self.kill("cloisterd")  # it reads the projects when it starts
        headers = {"Authorization": f"Bearer {self.key}"}
        self.client = httpx.Client(base_url=self.url, headers=headers, timeout=120, trust_env=False)
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        try:
            self.stop()
        finally:
            self.kill_rest()
            self.remove()
            self.log.unlink(missing_ok=True)
