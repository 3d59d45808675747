"""The application on a real local Ray Serve, started once for all tests."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

import kgrag
from kgrag.testing.openai_server import OpenAIServer

ray = pytest.importorskip("ray", reason="kgrag[ray] is not installed")

pytestmark = [pytest.mark.filterwarnings("ignore")]
"""Ray's own warnings are not ours to mend."""

QUESTION = "Where was Pál Gábor born?"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """URL of the application with ``naive`` and ``bridge``, and the model server behind it."""
    from ray import serve

    from serve_apps.search import build

    folder = tmp_path_factory.mktemp("ray")
    (folder / "angi.txt").write_text("Angi Vera is a Hungarian film of 1978. It was directed by Pál Gábor.\n", encoding="utf-8")
    (folder / "gabor.md").write_text("# Pál Gábor\n\nPál Gábor was born in Budapest in 1932.\n", encoding="utf-8")
    model_server = OpenAIServer(piece_latency=0.02, reply=lambda messages: "He was born in Budapest [1], as the passage says.")
    with model_server.in_thread():
        model = {"provider": "openai", "base_url": model_server.url, "model": "stub"}
        config = folder / "kgrag.yaml"
        settings = {
            "home": str(folder / "home"),
            "namespace": "films",
            "models": {"embedding": {**model, "dimension": 64}},
            "serve": {"max_ongoing_requests": 40, "max_queued_requests": 40, "max_replicas": 1},
        }
        config.write_text(json.dumps(settings), encoding="utf-8")
        with kgrag.connect(config) as client:
            client.ingest(folder / "angi.txt", folder / "gabor.md")
        settings["models"]["roles"] = {"answer": model}
        config.write_text(json.dumps(settings), encoding="utf-8")
        port = _free_port()
        ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
        try:
            serve.start(http_options={"port": port, "host": "127.0.0.1"})
            serve.run(build({"config": str(config), "strategies": "naive,bridge"}), name="kgrag")
            yield SimpleNamespace(url=f"http://127.0.0.1:{port}", models=model_server)
        finally:
            serve.shutdown()
            ray.shutdown()


@pytest.fixture
def client(app: Any) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=app.url, timeout=30) as client:
        yield client


def test_searches_take_the_strategy_they_ask_for(client: httpx.Client) -> None:
    for strategy, expected in (("naive", "naive"), ("basic", "naive"), ("bridge", "bridge"), (None, "bridge")):
        found = client.post("/v1/search", json={"question": QUESTION, **({"strategy": strategy} if strategy else {})}).json()
        assert found["strategy"] == expected
        assert found["sections"][0]["hits"][0]["path"] == "gabor.md"


def test_answers_cite(client: httpx.Client) -> None:
    said = client.post("/v1/answer", json={"question": QUESTION}).json()
    assert said["text"].startswith("He was born in Budapest [1]")
    assert said["citations"][0]["path"] == "gabor.md"


def test_the_first_event_leaves_before_the_last_piece_is_written(app: Any, client: httpx.Client) -> None:
    arrived: list[tuple[str, float]] = []
    with client.stream("POST", "/v1/answer", json={"question": QUESTION, "stream": True}) as reply:
        assert reply.headers["content-type"].startswith("text/event-stream")
        for line in reply.iter_lines():
            if line.startswith("event: "):
                arrived.append((line.removeprefix("event: "), time.monotonic()))
    assert [name for name, _ in arrived][-1] == "answer"
    assert len(arrived) >= 3
    assert arrived[0][1] < arrived[-1][1] - 0.01


@pytest.mark.parametrize(
    ("path", "body", "status", "type"),
    [
        ("/v1/search", {"question": QUESTION, "namespace": "nowhere"}, 404, "UnknownNamespaceError"),
        ("/v1/search", {"question": QUESTION, "strategy": "mix"}, 400, "UnknownStrategyError"),
        ("/v1/answer", {"question": QUESTION, "strategy": "locl", "stream": True}, 400, "UnknownStrategyError"),
        ("/v1/answer", {"question": QUESTION, "namespace": "nowhere", "stream": True}, 404, "UnknownNamespaceError"),
        ("/v1/search", {"question": QUESTION, "top_k": 0}, 422, "InvalidRequest"),
        ("/v1/search", {"question": "x" * 2_000_000}, 413, None),
    ],
)
def test_errors_have_one_form(client: httpx.Client, path: str, body: dict, status: int, type: str | None) -> None:
    reply = client.post(path, json=body)
    assert reply.status_code == status
    error = reply.json()["error"]
    assert error["message"]
    assert type is None or error["type"] == type


def test_the_server_describes_itself(client: httpx.Client) -> None:
    assert client.get("/healthz").json()["status"] == "ok"
    assert client.get("/v1/namespaces").json() == {"namespaces": [{"name": "films"}]}
    assert "/v1/answer" in client.get("/openapi.json").json()["paths"]


async def test_questions_of_many_clients_are_embedded_in_batches(app: Any) -> None:
    app.models.embedding_latency = 0.15
    app.models.counters.embeddings = app.models.counters.texts = 0
    try:
        async with httpx.AsyncClient(base_url=app.url, timeout=60, limits=httpx.Limits(max_connections=32)) as client:

            async def ask(worker: int) -> None:
                for number in range(4):
                    body = {"question": f"Who is number {worker} {number}?", "strategy": "naive"}
                    assert (await client.post("/v1/search", json=body)).status_code == 200

            await asyncio.gather(*(ask(worker) for worker in range(32)))
    finally:
        app.models.embedding_latency = 0.0
    counters = app.models.counters
    assert counters.texts == 128
    assert counters.texts / counters.embeddings >= 4


async def test_a_full_server_says_429(app: Any) -> None:
    app.models.latency = 1.0
    try:
        async with httpx.AsyncClient(base_url=app.url, timeout=60, limits=httpx.Limits(max_connections=None)) as client:
            body = {"question": QUESTION, "strategy": "naive"}
            replies = await asyncio.gather(*(client.post("/v1/answer", json=body) for _ in range(120)))
    finally:
        app.models.latency = 0.0
    refused = [reply for reply in replies if reply.status_code == 429]
    assert refused
    assert {reply.status_code for reply in replies} == {200, 429}
    assert all(reply.headers["retry-after"] == "1" and reply.json()["error"]["type"] == "Overloaded" for reply in refused)


def test_a_client_that_goes_away_cancels_its_work(app: Any) -> None:
    app.models.latency = 20.0
    try:
        for body in ({"question": QUESTION}, {"question": QUESTION, "stream": True}):
            with contextlib.suppress(httpx.TimeoutException), httpx.Client(base_url=app.url, timeout=1.5) as client:
                client.post("/v1/answer", json=body)
        deadline = time.monotonic() + 10
        while app.models.counters.active and time.monotonic() < deadline:
            time.sleep(0.05)
        assert app.models.counters.active == 0
    finally:
        app.models.latency = 0.0


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
