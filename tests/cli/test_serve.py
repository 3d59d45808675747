"""``kgrag serve`` as a process, asked over a socket. The interface itself is tested in tests/serve."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = str(Path(__file__).parents[2])


@contextmanager
def serving(home: Path, *arguments: str) -> Iterator[tuple[dict[str, Any], subprocess.Popen[str]]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "kgrag", "serve", "--port", str(port), "-n", "demo", "--json", *arguments]
    command += ["--set", "models.embedding.provider=none"]
    environment = {**os.environ, "PYTHONPATH": ROOT, "KGRAG_HOME": str(home)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        ready = next((line for line in process.stdout if line.startswith("{")), "")  # Ray may speak up before
        assert ready, process.stderr.read() if process.stderr else ""
        yield json.loads(ready), process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def post(url: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    for _ in range(100):
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                found: dict[str, Any] = json.loads(reply.read())
                return found
        except urllib.error.HTTPError:
            raise
        except (ConnectionError, urllib.error.URLError):  # it prints before it listens
            time.sleep(0.1)
    raise AssertionError("the server did not answer")


def test_in_one_process(built_sample: Path) -> None:
    with serving(built_sample, "--one-process") as (ready, process):
        answer = post(f"{ready['url']}/v1/answer", {"question": "How many passengers does the Tern carry?"})
        assert "180 passengers" in answer["text"]
        assert ready["memory_gib"] > 0
        process.send_signal(signal.SIGINT)
        assert process.wait(30) in (0, 130)


def test_on_ray(built_sample: Path) -> None:
    pytest.importorskip("ray")
    with serving(built_sample, "--strategies", "naive") as (ready, process):
        assert ready["strategies"] == ["naive"]
        found = post(f"{ready['url']}/v1/search", {"question": "export cable", "top_k": 1})
        assert found["sections"][0]["hits"][0]["rank"] == 1
        with pytest.raises(urllib.error.HTTPError) as refused:
            post(f"{ready['url']}/v1/search", {"question": "export cable", "strategy": "ppr"})
        assert refused.value.code == 400
        refused.value.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
