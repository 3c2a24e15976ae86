"""Use the API from Python without any package.

    CLOISTER_API_KEY=e2b_… python3 examples/api/client.py     (the key that `./dev serve` printed)
"""

import json
import os
import urllib.request

URL = os.environ.get("CLOISTER_URL", "http://127.0.0.1:8000")
KEY = os.environ["CLOISTER_API_KEY"]


def call(method: str, path: str, body: dict | None = None) -> dict:
    request = urllib.request.Request(
        URL + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        return json.loads(response.read() or "{}")


sandbox = call("POST", "/v1/sandboxes", {"memory_mb": 1024})
try:
    call("POST", f"/v1/sandboxes/{sandbox['id']}/runs", {"code": "numbers = range(10)"})
    run = call("POST", f"/v1/sandboxes/{sandbox['id']}/runs", {"code": "print('adding'); sum(numbers)"})
    print(run["stdout"]["text"], end="")
    print(run["end_reason"], run["results"][0]["data"]["text/plain"])
finally:
    call("DELETE", f"/v1/sandboxes/{sandbox['id']}")
