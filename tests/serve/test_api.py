"""The HTTP interface in one process, over the real application and a real index."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from kgrag.errors import TransientModelError, UnknownNamespaceError
from kgrag.query.engine import QueryEngine
from kgrag.query.serving import OpenEngines, ServeSettings
from serve_apps.local import make_local_app
from tests.query.library import ScriptedEngine, query_engine, write_index

QUESTION = "Where was Pál Gábor born?"


class Server:
    """The application over namespaces ``films`` and ``empty``; ``model`` can be swapped per test."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.model = ScriptedEngine()
        self.opened: list[str] = []
        self.engines = OpenEngines(self.open, 1)

    async def open(self, namespace: str) -> QueryEngine:
        if not (self.home / namespace).exists():
            raise UnknownNamespaceError(f'There is no index named "{namespace}".', subject=namespace, remedy="Known: films.")
        self.opened.append(namespace)
        from kgrag.backends.local.stores import open_stores

        stores = open_stores(self.home, namespace, mode="read")

        async def close() -> None:
            stores.close()

        return query_engine(stores, engine=self.model, namespace=namespace, on_close=close)


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    for namespace in ("films", "other"):
        (await write_index(tmp_path, namespace=namespace)).close()
    yield Server(tmp_path)


@pytest_asyncio.fixture
async def client(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    settings = ServeSettings(max_ongoing_requests=1, max_queued_requests=1, max_body_bytes=5000)
    app = make_local_app(server.engines, lambda: ["films", "other"], namespace="films", settings=settings)
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        yield client
    await server.engines.aclose()


async def test_search_gives_ranked_hits(client: httpx.AsyncClient) -> None:
    found = await client.post(
        "/v1/search", json={"question": QUESTION, "top_k": 2, "kinds": ["text_unit", "entity"], "strategy": "mix"}
    )
    assert found.status_code == 200
    sections = {section["kind"]: section["hits"] for section in found.json()["sections"]}
    assert len(sections["text_unit"]) == 2
    assert sections["text_unit"][0]["path"] == "films.jsonl"
    assert sections["entity"]


async def test_answers_come_as_json(client: httpx.AsyncClient) -> None:
    said = (await client.post("/v1/answer", json={"question": QUESTION})).json()
    assert said["text"].startswith("It says so [1].")
    assert [c["number"] for c in said["citations"]] == [1]


@pytest.mark.parametrize(
    "how",
    [
        {"json": {"question": QUESTION, "stream": True}},
        {"json": {"question": QUESTION}, "headers": {"accept": "text/event-stream"}},
    ],
)
async def test_answers_come_as_events_when_asked(client: httpx.AsyncClient, how: dict[str, Any]) -> None:
    reply = await client.post("/v1/answer", **how)
    assert reply.headers["content-type"].startswith("text/event-stream")
    events = [dict(line.split(": ", 1) for line in block.split("\n")) for block in reply.text.strip().split("\n\n")]
    assert {event["event"] for event in events[:-1]} == {"text"}
    answer = json.loads(events[-1]["data"])
    assert events[-1]["event"] == "answer"
    assert "".join(json.loads(event["data"]) for event in events[:-1]).strip() == answer["text"]


@pytest.mark.parametrize(
    ("path", "body", "status", "type"),
    [
        ("/v1/search", {"question": QUESTION, "namespace": "nowhere"}, 404, "UnknownNamespaceError"),
        ("/v1/search", {"question": QUESTION, "strategy": "locl"}, 400, "UnknownStrategyError"),
        ("/v1/search", {"question": QUESTION, "filter": {"year": {"near": 1}}}, 400, "InvalidFilterError"),
        ("/v1/search", {"question": "   "}, 400, "QueryError"),
        ("/v1/search", {"question": QUESTION, "search_type": "vector"}, 409, "ConfigurationError"),
        ("/v1/search", {"question": QUESTION, "top_k": 0}, 422, "InvalidRequest"),
        ("/v1/search", {"question": QUESTION, "topk": 3}, 422, "InvalidRequest"),
        ("/v1/search", {"question": QUESTION, "namespace": "../etc"}, 422, "InvalidRequest"),
        ("/v1/search", {}, 422, "InvalidRequest"),
        ("/v1/answer", {"question": QUESTION, "namespace": "nowhere", "stream": True}, 404, "UnknownNamespaceError"),
        ("/v1/answer", {"question": "x" * 6000}, 413, "RequestEntityTooLarge"),
        ("/v1/nothing", {}, 404, "NotFound"),
    ],
)
async def test_errors_have_one_form(client: httpx.AsyncClient, path: str, body: dict, status: int, type: str) -> None:
    reply = await client.post(path, json=body)
    assert reply.status_code == status
    error = reply.json()["error"]
    assert error["type"].replace("Content", "Entity").replace("PayloadTooLarge", "RequestEntityTooLarge") == type
    assert error["message"]


async def test_a_long_body_sent_in_chunks_is_refused(client: httpx.AsyncClient) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b" " * 1000

    reply = await client.post("/v1/search", content=chunks(), headers={"content-type": "application/json"})
    assert reply.status_code == 413


async def test_model_failures_say_when_to_come_back(server: Server, client: httpx.AsyncClient) -> None:
    server.model = ScriptedEngine(answer=lambda given: TransientModelError("The model is busy.", retry_after=7))
    reply = await client.post("/v1/answer", json={"question": QUESTION, "strategy": "naive"})
    assert (reply.status_code, reply.headers["retry-after"]) == (503, "7")


async def test_a_defect_is_a_typed_500(server: Server, client: httpx.AsyncClient) -> None:
    server.model = ScriptedEngine(answer=lambda given: ZeroDivisionError())
    reply = await client.post("/v1/answer", json={"question": QUESTION, "strategy": "naive"})
    assert (reply.status_code, reply.json()["error"]["type"]) == (500, "InternalError")


async def test_too_many_requests_are_turned_away(server: Server, client: httpx.AsyncClient) -> None:
    class Slow(ScriptedEngine):
        async def ask(self, task, input, *, sample=0):
            await asyncio.sleep(0.2)
            return await super().ask(task, input)

    server.model = Slow()
    replies = await asyncio.gather(*(client.post("/v1/answer", json={"question": QUESTION, "strategy": "naive"}) for _ in range(4)))
    assert sorted(reply.status_code for reply in replies) == [200, 200, 429, 429]
    refused = next(reply for reply in replies if reply.status_code == 429)
    assert refused.headers["retry-after"] == "1"
    assert refused.json()["error"]["type"] == "Overloaded"


async def test_a_late_question_is_504(server: Server, client: httpx.AsyncClient) -> None:
    class Slow(ScriptedEngine):
        async def ask(self, task, input, *, sample=0):
            await asyncio.sleep(5)

    server.model = Slow()
    reply = await client.post("/v1/answer", json={"question": QUESTION, "timeout_seconds": 0.05})
    assert reply.status_code == 504


async def test_namespaces_open_on_demand_and_the_oldest_closes(server: Server, client: httpx.AsyncClient) -> None:
    for namespace in ("films", "other", "films", "films"):
        reply = await client.post("/v1/search", json={"question": QUESTION, "namespace": namespace, "strategy": "naive"})
        assert reply.status_code == 200
    assert server.opened == ["films", "other", "films"]
    assert (await client.get("/v1/namespaces")).json() == {"namespaces": [{"name": "films"}, {"name": "other"}]}
    assert (await client.get("/healthz")).json()["status"] == "ok"


async def test_openapi_describes_every_request_and_response(client: httpx.AsyncClient) -> None:
    spec = (await client.get("/openapi.json")).json()
    assert set(spec["paths"]) == {"/v1/search", "/v1/answer", "/v1/namespaces", "/healthz"}
    for path, operations in spec["paths"].items():
        for operation in operations.values():
            for status, reply in operation["responses"].items():
                assert reply["content"]["application/json"]["schema"], (path, status)
    answer = spec["paths"]["/v1/answer"]["post"]["responses"]
    assert "text/event-stream" in answer["200"]["content"]
    assert {"400", "404", "409", "413", "422", "429", "503", "504"} <= set(answer)


async def test_responses_have_the_form_that_openapi_says(client: httpx.AsyncClient) -> None:
    from serve_apps.models import AnswerResponse, SearchResponse

    found = await client.post("/v1/search", json={"question": QUESTION, "kinds": ["text_unit", "entity", "relationship", "report"]})
    SearchResponse.model_validate(found.json())
    said = await client.post("/v1/answer", json={"question": QUESTION, "strategy": "global"})
    AnswerResponse.model_validate(said.json())
