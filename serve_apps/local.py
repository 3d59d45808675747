"""The same application in one process: no Ray, every strategy in place.

uvicorn --factory serve_apps.local:local_app        # configuration from KGRAG_CONFIG
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from fastapi import FastAPI

from kgrag import build as parts
from kgrag.query.engine import QueryEngine
from kgrag.query.serving import OpenEngines, ServeSettings
from kgrag.settings import Settings, load
from serve_apps.api import Reply, make_app
from serve_apps.replica import Replica


class LocalBackend:
    """At most ``max_ongoing_requests`` at once, ``max_queued_requests`` waiting; the next one is refused."""

    cancels = False

    def __init__(self, replica: Replica, namespaces: Callable[[], list[str]], settings: ServeSettings) -> None:
        self._replica = replica
        self._namespaces = namespaces
        self._limit = settings.max_ongoing_requests + settings.max_queued_requests
        self._places = asyncio.Semaphore(settings.max_ongoing_requests)
        self._present = 0

    async def search(self, asked: dict[str, Any]) -> Reply:
        return await self._admitted(self._replica.search, asked)

    async def answer(self, asked: dict[str, Any]) -> Reply:
        return await self._admitted(self._replica.answer, asked)

    async def stream(self, asked: dict[str, Any]) -> AsyncGenerator[Reply | bytes, None]:
        if self._present >= self._limit:
            yield self._replica.overloaded()
            return
        self._present += 1
        try:
            async with self._places, aclosing(self._replica.stream(asked)) as pieces:
                async for piece in pieces:
                    yield piece
        finally:
            self._present -= 1

    async def namespaces(self) -> list[str]:
        return self._namespaces()

    async def _admitted(self, work: Callable[[dict[str, Any]], Any], asked: dict[str, Any]) -> Reply:
        if self._present >= self._limit:
            return self._replica.overloaded()
        self._present += 1
        try:
            async with self._places:
                reply: Reply = await work(asked)
                return reply
        finally:
            self._present -= 1


def local_app(settings: Settings | None = None) -> FastAPI:
    """The application over the configured stores and models (by default the configuration of ``KGRAG_CONFIG``)."""
    chosen = settings or load().settings
    engine = parts.make_engine(chosen)
    embedder = parts.make_embedder(chosen)

    async def open_engine(namespace: str) -> QueryEngine:
        return await parts.open_query_engine(chosen, namespace, engine=engine, embedder=embedder)

    async def close() -> None:
        await engine.aclose()
        if embedder is not None:
            await embedder.aclose()

    engines = OpenEngines(open_engine, chosen.serve.open_namespaces)
    app = make_local_app(engines, lambda: parts.namespaces(chosen), namespace=chosen.namespace, settings=chosen.serve)
    app.router.add_event_handler("shutdown", close)
    return app


def make_local_app(
    engines: OpenEngines, namespaces: Callable[[], list[str]], *, namespace: str, settings: ServeSettings | None = None
) -> FastAPI:
    """The application over engines of this process; they are closed when it shuts down."""
    settings = settings or ServeSettings()
    backend = LocalBackend(Replica(engines, namespace, settings), namespaces, settings)
    app = make_app(lambda: backend, max_body_bytes=settings.max_body_bytes)
    app.router.add_event_handler("shutdown", engines.aclose)
    return app
