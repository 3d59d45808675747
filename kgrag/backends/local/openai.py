"""Chat models behind any OpenAI-compatible API: OpenAI, vLLM, llama.cpp, Ollama, a gateway."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any, Literal

import msgspec

from kgrag.backends.local.endpoint import Endpoint, sendable
from kgrag.engine.settings import ModelSettings
from kgrag.ids import digest
from kgrag.ports import Message, Reply
from kgrag.records import Usage
from kgrag.text import count_tokens

PATH = "/chat/completions"

Finish = Literal["stop", "length", "filter"]
_FINISH: dict[str, Finish] = {"length": "length", "content_filter": "filter"}


class _Said(msgspec.Struct):
    content: str | list[dict[str, Any]] | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Said | None = None
    delta: _Said | None = None
    finish_reason: str | None = None


class _Counts(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice] = []
    usage: _Counts | None = None
    error: Any = None


_read = msgspec.json.Decoder(_Completion).decode
_write = msgspec.json.Encoder().encode


class OpenAIChat:
    """A ChatModel over HTTP. Everyone in the process who names the same endpoint, model and key shares its limits."""

    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings
        self._endpoint = Endpoint(settings)
        self._fixed: dict[str, Any] = {"model": settings.model}
        if settings.temperature is not None:
            self._fixed["temperature"] = settings.temperature
        self._fixed.update(settings.extra_body)
        own = msgspec.json.encode([self._fixed, settings.max_output_tokens], order="deterministic")
        self._identity = f"openai:{settings.model}:{settings.revision}:{digest(own)[:12]}"

    def __repr__(self) -> str:
        return f"OpenAIChat({self._endpoint!r})"

    @property
    def identity(self) -> str:
        return self._identity

    async def complete(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> Reply:
        """Raises TransientModelError (retries spent), RejectedError, PermanentModelError."""
        body = self._body(messages, max_tokens)
        data = await self._endpoint.post(PATH, body, self._completion, tokens=self._expected(messages))
        choice = data.choices[0]
        said = choice.message or _Said()
        return self._reply(_text(said), "filter" if said.refusal else _finish(choice), data.usage, messages)

    async def stream(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> AsyncGenerator[str | Reply]:
        """Text as it arrives, then one Reply. A stream that ends early raises TransientModelError."""
        options = {"stream": True, **({"stream_options": {"include_usage": True}} if self._settings.stream_usage else {})}
        texts: list[str] = []
        finish: Finish | None = None
        counts: _Counts | None = None
        pieces = self._endpoint.stream(PATH, self._body(messages, max_tokens, options), tokens=self._expected(messages))
        async with aclosing(pieces), aclosing(_events(pieces)) as events:  # a consumer that leaves frees the slot at once
            async for event in events:
                data = self._completion(event, partial=True)
                counts = data.usage or counts
                for choice in data.choices[:1]:
                    said = choice.delta or _Said()
                    if text := _text(said):
                        texts.append(text)
                        yield text
                    if said.refusal:
                        finish = "filter"
                    elif choice.finish_reason:
                        finish = finish or _finish(choice)
        if finish is None:
            raise self._endpoint.garbled("a stream that broke off")
        self._endpoint.limits.succeeded()
        yield self._reply("".join(texts), finish, counts, messages)

    async def aclose(self) -> None:
        await self._endpoint.aclose()

    def _body(self, messages: Sequence[Message], max_tokens: int | None, options: dict[str, Any] | None = None) -> bytes:
        limit = max_tokens or self._settings.max_output_tokens
        body = {**self._fixed, "messages": messages, **(options or {})}
        if limit:
            body[self._settings.token_limit_field] = limit
        try:
            return _write(body)
        except UnicodeEncodeError:
            return _write({**body, "messages": [Message(m.role, sendable(m.content)) for m in messages]})

    def _completion(self, data: bytes, partial: bool = False) -> _Completion:
        try:
            completion = _read(data)
        except msgspec.MsgspecError:
            raise self._endpoint.garbled("a reply that is not JSON of a chat completion") from None
        if completion.error:
            raise self._endpoint.reported(completion.error, data)
        if not completion.choices and not partial:
            raise self._endpoint.garbled("a reply without choices")
        return completion

    def _expected(self, messages: Sequence[Message]) -> int:
        """Tokens to book ahead, where tokens are limited at all."""
        return _estimate(messages) if self._endpoint.limits.paced_by_tokens else 0

    def _reply(self, text: str, finish: Finish, counts: _Counts | None, messages: Sequence[Message]) -> Reply:
        """Servers that count no tokens have them estimated."""
        asked = counts.prompt_tokens if counts else None
        answered = counts.completion_tokens if counts else None
        asked = _estimate(messages) if asked is None else asked
        answered = count_tokens(text) if answered is None else answered
        cost = (asked * self._settings.input_price + answered * self._settings.output_price) / 1_000_000
        self._endpoint.limits.spent(answered)
        return Reply(text=text, finish=finish, usage=Usage(calls=1, input_tokens=asked, output_tokens=answered, cost=cost))


def _estimate(messages: Sequence[Message]) -> int:
    return sum(count_tokens(message.content) for message in messages)


def _finish(choice: _Choice) -> Finish:
    return _FINISH.get(choice.finish_reason or "", "stop")


def _text(said: _Said) -> str:
    """Content is a string or, with some servers, a list of typed parts of which only text is the answer."""
    content = said.content
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if part.get("type") == "text")
    return content or ""


async def _events(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """The data of server-sent events, up to ``[DONE]``."""
    rest = b""
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if not line.startswith(b"data:"):
                continue
            data = line[5:].strip()
            if data == b"[DONE]":
                return
            if data:
                yield data
