"""The HTTP interface, apart from what carries it: a FastAPI application over a ``Backend``.

``serve_apps.search`` puts Ray Serve deployments behind it, ``serve_apps.local`` one process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from http import HTTPStatus
from typing import Any, Protocol

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import kgrag
from serve_apps import models

EVENT_STREAM = "text/event-stream"


class Reply(msgspec.Struct, frozen=True):
    """A response as it travels between deployments: encoded once, where it was made."""

    status: int
    body: bytes
    retry_after: int | None = None


class Backend(Protocol):
    """Who answers. Requests are bodies of ``serve_apps.models`` as plain dictionaries, without what was left out."""

    cancels: bool
    """Whether a client that disconnects already cancels the request's task."""

    async def search(self, asked: dict[str, Any]) -> Reply: ...

    async def answer(self, asked: dict[str, Any]) -> Reply: ...

    def stream(self, asked: dict[str, Any]) -> AsyncGenerator[Reply | bytes, None]:
        """A Reply where the request fails before the first piece; else server-sent events."""
        ...

    async def namespaces(self) -> list[str]: ...


def make_app(backend: Callable[[], Backend], *, max_body_bytes: int) -> FastAPI:
    """The application. ``backend`` is called on a request, so that it may need a running event loop."""
    app = FastAPI(
        title="kgrag",
        version=kgrag.__version__,
        description="Search a knowledge-graph index, and answer questions from it with citations.",
        responses={code: {"model": models.ErrorResponse, "description": text} for code, text in _ERRORS.items()},
    )
    app.add_middleware(BodyLimit, max_bytes=max_body_bytes)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _defect)

    @app.post("/v1/search", response_model=models.SearchResponse, tags=["questions"], summary="Ranked results")
    async def search(asked: models.SearchRequest, request: Request) -> Response:
        who = backend()
        return _response(await _while_connected(request, who, who.search(asked.model_dump(exclude_none=True))))

    @app.post(
        "/v1/answer",
        response_model=models.AnswerResponse,
        tags=["questions"],
        summary="A grounded answer with citations",
        responses={200: {"content": {EVENT_STREAM: {"schema": {"type": "string"}}}}},
    )
    async def answer(asked: models.AnswerRequest, request: Request) -> Response:
        who = backend()
        given = asked.model_dump(exclude_none=True, exclude={"stream"})
        if not asked.stream and EVENT_STREAM not in request.headers.get("accept", ""):
            return _response(await _while_connected(request, who, who.answer(given)))
        events = who.stream(given)
        first = await _while_connected(request, who, _first(events))
        if isinstance(first, Reply):
            await events.aclose()
            return _response(first)
        return StreamingResponse(_rest(first, events), media_type=EVENT_STREAM, headers={"cache-control": "no-cache"})

    @app.get("/v1/namespaces", tags=["server"], summary="Indexes that can be asked")
    async def namespaces() -> models.NamespaceList:
        return models.NamespaceList(namespaces=[models.Namespace(name=name) for name in await backend().namespaces()])

    @app.get("/healthz", tags=["server"], summary="That the server answers")
    async def health() -> models.Health:
        return models.Health(version=kgrag.__version__)

    return app


class BodyLimit:
    """Answers 413 to a request whose body is longer than ``max_bytes``, however it is sent."""

    def __init__(self, app: ASGIApp, *, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if declared.isdigit() and int(declared) > self._max_bytes:
            await self._refuse(scope, receive, send)
            return
        taken = 0

        async def limited() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self._max_bytes:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, self._message)
            return message

        await self._app(scope, limited, send)

    @property
    def _message(self) -> str:
        return f"The request body is longer than {self._max_bytes} bytes."

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        error = _error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "PayloadTooLarge", self._message, "Send a shorter request.")
        await error(scope, receive, send)


async def _while_connected(request: Request, who: Backend, work: Coroutine[Any, Any, Any]) -> Any:
    """The result of ``work``, which is cancelled when the client goes away."""
    if who.cancels:
        return await work
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise HTTPException(_CLIENT_CLOSED, "The client went away.")
    finally:
        for each in (task, gone):
            each.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _first(events: AsyncGenerator[Reply | bytes, None]) -> Reply | bytes:
    return await anext(events)


async def _rest(first: bytes, events: AsyncGenerator[Reply | bytes, None]) -> AsyncIterator[bytes]:
    async with aclosing(events):
        yield first
        async for event in events:
            if isinstance(event, bytes):
                yield event


def _response(reply: Reply) -> Response:
    headers = {"retry-after": str(reply.retry_after)} if reply.retry_after is not None else None
    return Response(reply.body, reply.status, headers, "application/json")


def _error(status: int, type: str, message: str, remedy: str = "", details: Any = None) -> JSONResponse:
    body: dict[str, Any] = {"type": type, "message": message, "remedy": remedy, "subject": ""}
    return JSONResponse({"error": {**body, "details": details} if details else body}, status)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    problems = [{"field": ".".join(map(str, p["loc"][1:])), "problem": p["msg"]} for p in error.errors()]
    text = "; ".join(f"{p['field'] or 'body'}: {p['problem']}" for p in problems)
    return _error(422, "InvalidRequest", f"The request is not valid: {text}.", "See /docs for its form.")


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code) if error.status_code != _CLIENT_CLOSED else None
    name = status.phrase.title().replace(" ", "") if status is not None else "ClientClosedRequest"
    return _error(error.status_code, name, str(error.detail))


async def _defect(request: Request, error: Exception) -> Response:
    return _error(500, "InternalError", "The server failed.", "See its log.")


_CLIENT_CLOSED = 499
_ERRORS: dict[int | str, str] = {
    400: "The question, filter or strategy is wrong",
    404: "No such namespace",
    409: "The index lacks what the strategy reads, or was built with another embedding",
    413: "The request is too long",
    422: "The request does not have the right form",
    429: "Too many requests; see Retry-After",
    500: "A defect of the server",
    503: "A store or model cannot be reached",
    504: "The question ran out of time",
}
