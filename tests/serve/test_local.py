"""The application in one process, behind a real uvicorn."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest_asyncio
import uvicorn

import kgrag
from kgrag.settings import load
from kgrag.testing.openai_server import OpenAIServer
from serve_apps.local import local_app

QUESTION = "Where was Pál Gábor born?"


@pytest_asyncio.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[str, OpenAIServer]]:
    """URL of the server, and the model server behind it."""
    (tmp_path / "gabor.md").write_text("# Pál Gábor\n\nPál Gábor was born in Budapest in 1932.\n", encoding="utf-8")
    async with OpenAIServer(reply=lambda messages: "In Budapest [1].") as models:
        settings: dict[str, Any] = {"home": str(tmp_path / "home"), "models": {"embedding": {"provider": "none"}}}
        async with kgrag.connect(**settings) as client:
            await client.aingest(tmp_path / "gabor.md")
        settings["models"]["roles"] = {"answer": {"provider": "openai", "base_url": models.url, "model": "stub"}}
        server = uvicorn.Server(uvicorn.Config(local_app(load(overrides=settings).settings), port=0, log_level="error"))
        task = asyncio.create_task(server.serve())
        while not server.started:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        host, port = server.servers[0].sockets[0].getsockname()[:2]
        yield f"http://{host}:{port}", models
        server.should_exit = True
        await task


async def test_it_searches_and_answers(served: tuple[str, OpenAIServer]) -> None:
    url, _ = served
    async with httpx.AsyncClient(base_url=url) as client:
        found = await client.post("/v1/search", json={"question": QUESTION})
        assert found.json()["sections"][0]["hits"][0]["path"] == "gabor.md"
        said = await client.post("/v1/answer", json={"question": QUESTION})
        assert said.json()["text"] == "In Budapest [1]."
        assert (await client.get("/v1/namespaces")).json() == {"namespaces": [{"name": "default"}]}


async def test_a_client_that_goes_away_cancels_its_work(served: tuple[str, OpenAIServer]) -> None:
    url, models = served
    models.latency = 20.0
    for body in ({"question": QUESTION}, {"question": QUESTION, "stream": True}):
        with contextlib.suppress(httpx.TimeoutException):
            async with httpx.AsyncClient(base_url=url, timeout=0.5) as client:
                await client.post("/v1/answer", json=body)
    deadline = time.monotonic() + 5
    while models.counters.active and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    assert models.counters.active == 0
    assert models.counters.chat == 2
