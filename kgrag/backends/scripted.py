"""An engine and a chat model whose answers a test decides. They keep the contracts of the real ones."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from kgrag.engine.task import Outcome, Task
from kgrag.errors import ConfigurationError
from kgrag.ids import digest
from kgrag.ports import Message, Reply
from kgrag.records import Usage, encode
from kgrag.text import count_tokens

I = TypeVar("I", bound=msgspec.Struct)  # noqa: E741
O = TypeVar("O")  # noqa: E741


class ScriptedEngine:
    """Answers each task from ``answers[task.name]``: a value, or a function from the input to one; a ModelError in its
    place, returned or raised, is raised. ``latency`` is seconds per answer, or a function from the input to them.

    ``calls`` counts questions per task name, ``inputs`` lists them in order. Answers are not kept: every question counts."""

    def __init__(self, answers: Mapping[str, Any], *, latency: float | Callable[[Any], float] = 0.0, revision: str = "") -> None:
        self.answers = dict(answers)
        self.calls: Counter[str] = Counter()
        self.inputs: list[tuple[str, Any]] = []
        self._latency = latency
        self._revision = revision

    def identity(self, task: Task[I, O]) -> str:
        return digest("scripted", task.identity, self._revision)

    async def ask(self, task: Task[I, O], input: I, *, sample: int = 0) -> Outcome[O]:
        """Raises ConfigurationError where the task has no answer."""
        value: O = await self._answer(task, input)
        keys = (digest("answer", self.identity(task), encode(input), str(sample)),) if task.stored else ()
        return Outcome(value=value, answers=keys, usage=Usage(calls=1))

    async def stream(self, task: Task[I, str], input: I) -> AsyncGenerator[str | Outcome[str]]:
        """The text word by word, then the Outcome."""
        text: str = await self._answer(task, input)
        for position, word in enumerate(text.split(" ")):
            yield f" {word}" if position else word
        yield Outcome(value=text, usage=Usage(calls=1))

    async def aclose(self) -> None:
        """Nothing is open."""

    async def _answer(self, task: Task[I, O], input: I) -> Any:
        self.calls[task.name] += 1
        self.inputs.append((task.name, input))
        seconds = self._latency(input) if callable(self._latency) else self._latency
        if seconds:
            await asyncio.sleep(seconds)
        if task.name not in self.answers:
            raise ConfigurationError(
                f"The scripted engine has no answer to '{task.name}'.",
                subject=task.name,
                remedy=f"It knows: {', '.join(sorted(self.answers)) or 'nothing'}.",
            )
        answer = self.answers[task.name]
        value = answer(input) if callable(answer) else answer
        if isinstance(value, Exception):
            raise value
        return value


class ScriptedChat:
    """A ChatModel. ``reply`` makes the text, or a whole Reply, from the messages; an error in its place is raised.

    ``calls`` counts completions and streams, ``prompts`` how often each list of messages was put (by digest)."""

    def __init__(
        self,
        reply: Callable[[Sequence[Message]], str | Reply | Exception],
        *,
        latency: float = 0.0,
        identity: str = "scripted",
        pieces: int = 8,
    ) -> None:
        self.calls = 0
        self.prompts: Counter[str] = Counter()
        self._reply = reply
        self._latency = latency
        self._identity = identity
        self._pieces = pieces
        self.closed = False

    @property
    def identity(self) -> str:
        return self._identity

    async def complete(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> Reply:
        self.calls += 1
        self.prompts[digest(*(message.content for message in messages))] += 1
        await asyncio.sleep(self._latency)
        made = self._reply(messages)
        if isinstance(made, Exception):
            raise made
        if isinstance(made, Reply):
            return made
        asked = sum(count_tokens(message.content) for message in messages)
        return Reply(text=made, usage=Usage(calls=1, input_tokens=asked, output_tokens=count_tokens(made)))

    async def stream(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> AsyncGenerator[str | Reply]:
        reply = await self.complete(messages, max_tokens=max_tokens)
        size = max(len(reply.text) // self._pieces, 1)
        for start in range(0, len(reply.text), size):
            yield reply.text[start : start + size]
        yield reply

    async def aclose(self) -> None:
        self.closed = True
