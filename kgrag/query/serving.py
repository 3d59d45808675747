"""Serving queries, whatever carries the requests: how much at once, which namespaces are open, what an error is over HTTP."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus

import msgspec
from pydantic import Field

from kgrag.errors import (
    ConfigurationError,
    DeadlineExceededError,
    KgragError,
    MethodologyNotIndexedError,
    ModelError,
    QueryError,
    RejectedError,
    StoreError,
    TransientModelError,
    UnknownNamespaceError,
)
from kgrag.query.engine import QueryEngine
from kgrag.section import Section


class ServeSettings(Section):
    """Limits of one server and shape of its deployments."""

    max_body_bytes: int = Field(default=1_000_000, ge=1)
    """Largest request body; a larger one is answered 413."""
    max_ongoing_requests: int = Field(default=64, ge=1)
    """Requests that one replica (or the one process) works on at once."""
    max_queued_requests: int = Field(default=256, ge=0)
    """Requests that wait for a replica; the next one is answered 429."""
    retry_after_seconds: int = Field(default=1, ge=1)
    """What a 429 asks the client to wait."""
    open_namespaces: int = Field(default=16, ge=1)
    """Namespaces one replica keeps open; the one used longest ago is closed for the next."""
    replica_cpus: float = Field(default=0.05, ge=0)
    """CPUs reserved per replica: a fraction, as a small machine holds a replica of each strategy."""
    max_replicas: int = Field(default=4, ge=1)
    """Most replicas per strategy; there is always one."""
    target_ongoing_requests: float = Field(default=16, gt=0)
    """Requests in work per replica above which another one is started."""
    shared_embedding: bool | None = None
    """Whether questions are embedded in a deployment of their own, in batches. By default where the model is remote or
    too heavy to be loaded into every replica."""
    embedding_batch_size: int = Field(default=32, ge=1)
    """Most questions per embedding call of the shared deployment."""
    embedding_batch_wait_seconds: float = Field(default=0.002, gt=0)
    """How long a question waits for others where no call is running; those that come during a call are embedded together."""


class ErrorBody(msgspec.Struct, frozen=True):
    """What went wrong, with which thing, and what to do."""

    type: str
    message: str
    remedy: str = ""
    subject: str = ""


class OpenEngines:
    """Query engines of the namespaces last asked for, opened on demand, at most ``capacity`` beside those in use."""

    def __init__(self, open_engine: Callable[[str], Awaitable[QueryEngine]], capacity: int) -> None:
        self._open_engine = open_engine
        self._capacity = capacity
        self._open: OrderedDict[str, _Open] = OrderedDict()

    @asynccontextmanager
    async def use(self, namespace: str) -> AsyncIterator[QueryEngine]:
        """The engine of a namespace; it stays open while it is in use. Raises UnknownNamespaceError, StoreError,
        ConfigurationError."""
        held = self._open.get(namespace)
        if held is None:
            opened = await self._open_engine(namespace)
            held = self._open.setdefault(namespace, _Open(opened))
            if held.engine is not opened:  # another request was faster
                await opened.aclose()
        self._open.move_to_end(namespace)
        held.users += 1
        try:
            yield held.engine
        finally:
            held.users -= 1
            await self._close_surplus()

    async def aclose(self) -> None:
        """Close all of them."""
        while self._open:
            _, held = self._open.popitem()
            await held.engine.aclose()

    async def _close_surplus(self) -> None:
        surplus = len(self._open) - self._capacity
        for namespace in [name for name, held in self._open.items() if not held.users][: max(surplus, 0)]:
            await self._open.pop(namespace).engine.aclose()


class _Open:
    """An open engine and how many requests use it."""

    __slots__ = ("engine", "users")

    def __init__(self, engine: QueryEngine) -> None:
        self.engine = engine
        self.users = 0


def status_of(error: KgragError) -> HTTPStatus:
    """The HTTP status an error is answered with."""
    for kind, status in _STATUS:
        if isinstance(error, kind):
            return status
    return HTTPStatus.INTERNAL_SERVER_ERROR


def error_json(error: KgragError) -> bytes:
    """The JSON body an error is answered with: ``{"error": {"type", "message", "remedy", "subject"}}``."""
    body = ErrorBody(type(error).__name__, error.message, error.remedy, error.subject)
    return msgspec.json.encode({"error": body})


def retry_after(error: KgragError, default: int) -> int | None:
    """Seconds for a Retry-After header; None where asking again does not help."""
    if isinstance(error, TransientModelError) and error.retry_after is not None:
        return max(round(error.retry_after), 1)
    return default if status_of(error) in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE) else None


_STATUS: tuple[tuple[type[KgragError], HTTPStatus], ...] = (
    (UnknownNamespaceError, HTTPStatus.NOT_FOUND),
    (MethodologyNotIndexedError, HTTPStatus.CONFLICT),
    (DeadlineExceededError, HTTPStatus.GATEWAY_TIMEOUT),
    (QueryError, HTTPStatus.BAD_REQUEST),
    (ConfigurationError, HTTPStatus.CONFLICT),
    (RejectedError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (ModelError, HTTPStatus.SERVICE_UNAVAILABLE),
    (StoreError, HTTPStatus.SERVICE_UNAVAILABLE),
)
