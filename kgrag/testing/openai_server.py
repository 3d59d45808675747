"""An OpenAI-compatible server on a real socket, whose replies, delays and failures a test decides.

    async with OpenAIServer(latency=0.2, slow_every=20, slow_latency=2.0) as server:
        server.faults.append(Fault.status(429, retry_after=0.1))
        ... base_url=server.url ...

or, as a process of its own: ``python -m kgrag.testing.openai_server --latency 0.2`` (prints its URL; ``GET /stats`` gives
the counters, ``POST /reset`` zeroes them and changes settings).
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import re
import threading
import time
import zlib
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from aiohttp import web

from kgrag.ids import digest
from kgrag.ports import Message
from kgrag.testing.reader import read
from kgrag.text import count_tokens

_write = msgspec.json.Encoder().encode
_WORD = re.compile(r"\w+")
STREAMED_CHARACTERS = 24
"""Length of the pieces of a streamed reply."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """What goes wrong with one request. ``cut_after`` closes the connection after so many bytes of the body;
    ``delay`` is a wait before the first one; ``body`` replaces it; ``finish`` and ``keep`` cut a completion short."""

    code: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    delay: float = 0.0
    cut_after: int | None = None
    finish: str | None = None
    keep: int | None = None

    @staticmethod
    def status(code: int, message: str = "scripted", *, error_code: str = "", param: str = "", retry_after: Any = None) -> Fault:
        """An error as the OpenAI API words it."""
        error = {"message": message, "type": "error", "code": error_code or None, "param": param or None}
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        return Fault(code=code, headers=headers, body=_write({"error": error}))


@dataclass(kw_only=True, slots=True)
class Counters:
    """What was asked since the last reset. ``prompts`` counts calls per digest of the messages; ``latency`` is the sum
    of the waits that were answered with."""

    chat: int = 0
    embeddings: int = 0
    texts: int = 0
    active: int = 0
    most_active: int = 0
    latency: float = 0.0
    prompts: Counter[str] = field(default_factory=Counter)


class OpenAIServer:
    """``reply`` makes the text of a completion from the messages. ``faults`` are used up one per request, in order
    (None: a request that goes well); ``fault`` decides by the prompt or the embedded texts, for as long as it is set."""

    def __init__(
        self,
        *,
        reply: Callable[[Sequence[Message]], str] = read,
        latency: float = 0.0,
        slow_every: int = 0,
        slow_latency: float = 0.0,
        embedding_latency: float = 0.0,
        piece_latency: float = 0.0,
        dimension: int = 64,
        usage: bool = True,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.reply = reply
        self.latency, self.slow_every, self.slow_latency = latency, slow_every, slow_latency
        self.embedding_latency, self.piece_latency = embedding_latency, piece_latency
        self.dimension, self.usage = dimension, usage
        self.faults: deque[Fault | None] = deque()
        self.fault: Callable[[str], Fault | None] | None = None
        self.counters = Counters()
        self.requests: deque[tuple[dict[str, Any], Mapping[str, str]]] = deque(maxlen=100)
        """The last bodies and headers."""
        self.url = ""
        self._host, self._port = host, port
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> OpenAIServer:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/embeddings", self._embeddings)
        app.router.add_get("/stats", self._stats)
        app.router.add_post("/reset", self._reset)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.5)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port, backlog=1024)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @contextmanager
    def in_thread(self) -> Iterator[OpenAIServer]:
        """Serve from a thread of its own, for callers that block or bring their own event loop."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, daemon=True)
        thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self.__aenter__(), loop).result()
            yield self
            asyncio.run_coroutine_threadsafe(self.__aexit__(), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    @property
    def repeated(self) -> int:
        """How many calls put a prompt that had been put before."""
        return sum(count - 1 for count in self.counters.prompts.values())

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await self._body(request)
        messages = [Message(m["role"], m["content"]) for m in body["messages"]]
        prompt = "\n".join(message.content for message in messages)
        counters = self.counters
        counters.chat += 1
        counters.prompts[digest(prompt)] += 1
        slow = self.slow_every and counters.chat % self.slow_every == 0
        fault = self._fault(prompt)
        refused = fault is not None and (fault.body is not None or fault.code != 200)
        with self._working(self.slow_latency if slow else self.latency) as ready:
            text = "" if refused else self.reply(messages)
            finish = "stop"
            if fault is not None and fault.finish is not None:
                text, finish = text[: fault.keep], fault.finish
            counts = {"prompt_tokens": count_tokens(prompt), "completion_tokens": count_tokens(text)} if self.usage else None
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
            whole = {"id": "chatcmpl", "object": "chat.completion", "model": body["model"], "choices": [choice], "usage": counts}
            written = _write(whole)
            await ready()
            if refused and fault is not None:
                return await self._faulty(request, fault, fault.body or b"")
            if body.get("stream"):
                return await self._streamed(request, body, text, finish, counts, fault)
            return await self._faulty(request, fault, written)

    async def _streamed(
        self,
        request: web.Request,
        body: dict[str, Any],
        text: str,
        finish: str,
        counts: dict[str, int] | None,
        fault: Fault | None,
    ) -> web.StreamResponse:
        if fault is not None and fault.delay:
            await asyncio.sleep(fault.delay)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        sent = 0
        for event in _events(text, finish, counts if body.get("stream_options", {}).get("include_usage") else None):
            if fault is not None and fault.cut_after is not None and sent + len(event) > fault.cut_after:
                _abort(request)
                return response
            await response.write(event)
            sent += len(event)
            if self.piece_latency:
                await asyncio.sleep(self.piece_latency)
        await response.write_eof()
        return response

    async def _embeddings(self, request: web.Request) -> web.StreamResponse:
        body = await self._body(request)
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        self.counters.embeddings += 1
        self.counters.texts += len(texts)
        fault = self._fault("\n".join(texts))
        with self._working(self.embedding_latency) as ready:
            await ready()
            if fault is not None and (fault.body is not None or fault.code != 200):
                return await self._faulty(request, fault, fault.body or b"")
            vectors = [vector(text, body.get("dimensions") or self.dimension) for text in texts]
            encoded = [_encoded(v, body.get("encoding_format", "float")) for v in vectors]
            rows = [{"object": "embedding", "index": i, "embedding": e} for i, e in enumerate(encoded)]
            rows.reverse()  # the API promises an index, not an order
            counts = {"prompt_tokens": sum(map(count_tokens, texts)), "total_tokens": 0} if self.usage else None
            return await self._faulty(request, fault, _write({"object": "list", "data": rows, "usage": counts}))

    async def _faulty(self, request: web.Request, fault: Fault | None, body: bytes) -> web.StreamResponse:
        """The body, with what the fault does to it."""
        if fault is None:
            return web.Response(body=body, content_type="application/json")
        if fault.delay:
            await asyncio.sleep(fault.delay)
        if fault.cut_after is None:
            return web.Response(status=fault.code, headers=fault.headers, body=body, content_type="application/json")
        response = web.StreamResponse(headers={"Content-Length": str(len(body)), "Content-Type": "application/json"})
        if fault.cut_after:
            await response.prepare(request)
            await response.write(body[: fault.cut_after])
        _abort(request)
        return response

    def _fault(self, prompt: str) -> Fault | None:
        if self.faults:
            return self.faults.popleft()
        return self.fault(prompt) if self.fault is not None else None

    async def _body(self, request: web.Request) -> dict[str, Any]:
        body: dict[str, Any] = msgspec.json.decode(await request.read())
        self.requests.append((body, request.headers))
        return body

    @contextmanager
    def _working(self, latency: float) -> Iterator[Callable[[], Awaitable[None]]]:
        """Counts a request in flight; gives a wait for the rest of its latency, which the making of the reply is part of."""
        until = time.monotonic() + latency

        async def ready() -> None:
            await asyncio.sleep(max(until - time.monotonic(), 0.0))

        counters = self.counters
        counters.active += 1
        counters.most_active = max(counters.most_active, counters.active)
        counters.latency += latency
        try:
            yield ready
        finally:
            counters.active -= 1

    async def _stats(self, request: web.Request) -> web.Response:
        c = self.counters
        stats = {"chat": c.chat, "embeddings": c.embeddings, "texts": c.texts, "most_active": c.most_active, "latency": c.latency}
        return web.json_response({**stats, "repeated": self.repeated})

    async def _reset(self, request: web.Request) -> web.Response:
        changes = json.loads(await request.text() or "{}")
        for name in changes.keys() & {"latency", "slow_every", "slow_latency", "embedding_latency", "piece_latency"}:
            setattr(self, name, changes[name])
        self.counters = Counters(active=self.counters.active)
        return web.json_response({})


def vector(text: str, dimension: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """A unit vector from the hashes of a text's words: texts that share words are near each other."""
    made = np.zeros(dimension, np.float32)
    for word in _WORD.findall(text.lower()) or [""]:
        made[zlib.crc32(word.encode("utf-8", "surrogatepass")) % dimension] += 1.0
    unit: np.ndarray[Any, np.dtype[np.float32]] = made / np.linalg.norm(made)
    return unit


def _encoded(made: np.ndarray[Any, np.dtype[np.float32]], form: str) -> Any:
    return base64.b64encode(made.astype("<f4").tobytes()).decode() if form == "base64" else made.tolist()


def _events(text: str, finish: str, counts: dict[str, int] | None) -> Iterator[bytes]:
    def event(delta: dict[str, str], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return b"data: " + _write({"object": "chat.completion.chunk", "choices": [choice]}) + b"\n\n"

    yield event({"role": "assistant", "content": ""})
    for start in range(0, len(text), STREAMED_CHARACTERS):
        yield event({"content": text[start : start + STREAMED_CHARACTERS]})
    yield event({}, finish)
    if counts is not None:
        yield b"data: " + _write({"object": "chat.completion.chunk", "choices": [], "usage": counts}) + b"\n\n"
    yield b"data: [DONE]\n\n"


def _abort(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


async def _serve(options: argparse.Namespace) -> None:
    async with OpenAIServer(**vars(options)) as server:
        print(server.url, flush=True)
        await asyncio.Event().wait()


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m kgrag.testing.openai_server", description=__doc__.splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds per chat call")
    parser.add_argument("--slow-every", type=int, default=0, help="every so manieth chat call is slow")
    parser.add_argument("--slow-latency", type=float, default=0.0, help="seconds of a slow chat call")
    parser.add_argument("--embedding-latency", type=float, default=0.0, help="seconds per embedding call")
    parser.add_argument("--dimension", type=int, default=64, help="length of the vectors")
    try:
        asyncio.run(_serve(parser.parse_args()))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
