"""What one replica does with a request, whoever carries it there: open the namespace, ask its engine, encode the result."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from http import HTTPStatus
from typing import Any

import msgspec

from kgrag.errors import KgragError
from kgrag.query.serving import OpenEngines, ServeSettings, error_json, retry_after, status_of
from kgrag.records import Answer
from serve_apps.api import Reply


class Replica:
    """Requests to replies. Errors that kgrag raises on purpose become replies; any other is the server's defect."""

    def __init__(self, engines: OpenEngines, namespace: str, settings: ServeSettings) -> None:
        self._engines = engines
        self._namespace = namespace
        self._settings = settings

    async def search(self, asked: dict[str, Any]) -> Reply:
        question, namespace, options = self._parts(asked)
        try:
            async with self._engines.use(namespace) as engine:
                return Reply(200, msgspec.json.encode(await engine.search(question, **options)))
        except KgragError as error:
            return self.failed(error)

    async def answer(self, asked: dict[str, Any]) -> Reply:
        question, namespace, options = self._parts(asked)
        try:
            async with self._engines.use(namespace) as engine:
                return Reply(200, msgspec.json.encode(await engine.answer(question, **options)))
        except KgragError as error:
            return self.failed(error)

    async def stream(self, asked: dict[str, Any]) -> AsyncGenerator[Reply | bytes, None]:
        """Server-sent events: ``text`` (a JSON string each), then ``answer``; ``error`` where it breaks off later."""
        question, namespace, options = self._parts(asked)
        begun = False
        try:
            async with self._engines.use(namespace) as engine, aclosing(engine.stream(question, **options)) as pieces:
                async for piece in pieces:
                    begun = True
                    yield event("answer" if isinstance(piece, Answer) else "text", msgspec.json.encode(piece))
        except KgragError as error:
            failed = self.failed(error)
            yield event("error", failed.body) if begun else failed

    def failed(self, error: KgragError) -> Reply:
        return Reply(status_of(error), error_json(error), retry_after(error, self._settings.retry_after_seconds))

    def overloaded(self) -> Reply:
        """What is answered where too many requests wait already."""
        body = {"error": {"type": "Overloaded", "message": "Too many requests.", "remedy": "Ask again later.", "subject": ""}}
        return Reply(HTTPStatus.TOO_MANY_REQUESTS, msgspec.json.encode(body), self._settings.retry_after_seconds)

    def _parts(self, asked: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
        options = dict(asked)
        return options.pop("question"), options.pop("namespace", self._namespace), options


def event(name: str, data: bytes) -> bytes:
    """One server-sent event; JSON has no line breaks of its own."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data)
