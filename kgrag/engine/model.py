"""The engine that asks chat models."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, TypeVar

import msgspec

from kgrag.engine.task import Outcome, Parsed, Task
from kgrag.engine.writer import AnswerWriter
from kgrag.errors import ConfigurationError, ItemError, OutputError, RejectedError, TruncatedError
from kgrag.ids import digest
from kgrag.ports import AnswerStore, ChatModel, Reply
from kgrag.records import Usage
from kgrag.tasks.repair import FIX, FixInput
from kgrag.tasks.replies import without_reasoning

I = TypeVar("I", bound=msgspec.Struct)  # noqa: E741
O = TypeVar("O")  # noqa: E741

DEFAULT = "default"
"""The model of every role that has none of its own."""


TURNS_BEFORE_READING = 2
"""Turns of the event loop between a reply and its reading, so that whoever got its slot sends the next question first.
Replies come in bursts: without it, 16 calls in flight lost 4 to 8 % of a 200 ms model's time."""


class ModelEngine:
    """Answers tasks with one chat model per role (``models["default"]`` for the rest).

    A reply is stored once it was parsed: under the digest of task, prompt, model, settings and sample number. A reply that
    was cut off, refused, late or could not be parsed never is. One that cannot be parsed is repaired once by the model
    of the role ``fixing``. Identical questions that are asked at the same time are asked once.

    ``reuse`` off asks everything again (and stores the new answers). ``threads`` takes the store's calls off the event
    loop, for stores that are not in the process. ``usage`` adds up, per role, what was paid, failed items included.
    """

    def __init__(
        self,
        models: Mapping[str, ChatModel],
        *,
        answers: AnswerStore | None = None,
        reuse: bool = True,
        threads: bool = False,
    ) -> None:
        if DEFAULT not in models:
            raise ConfigurationError("The model engine has no default model.", remedy=f"Give one under '{DEFAULT}'.")
        self._models = dict(models)
        self._answers = answers
        self._writer = AnswerWriter(answers, threads=threads) if answers is not None else None
        self._reuse = reuse
        self._threads = threads
        self._asked: dict[str, asyncio.Future[Outcome[Any] | Exception | None]] = {}
        self._identities: dict[Task[Any, Any], str] = {}
        self.usage: dict[str, Usage] = {}

    def identity(self, task: Task[I, O]) -> str:
        """What decides this task's answers besides its input: prompt, parser version, model, revision, settings."""
        known = self._identities.get(task)
        if known is None:
            known = self._identities[task] = digest("engine", task.identity, self._model(task.role).identity)
        return known

    async def ask(self, task: Task[I, O], input: I, *, sample: int = 0) -> Outcome[O]:
        """Raises ItemError (this input only), TransientModelError, PermanentModelError."""
        prompt = task.render(input)
        key = digest("answer", self.identity(task), prompt, str(sample))
        loop = asyncio.get_running_loop()
        while (asked := self._asked.get(key)) is not None and asked.get_loop() is loop:
            outcome = await asyncio.shield(asked)
            if isinstance(outcome, Exception):
                raise outcome
            if outcome is not None:
                return Outcome(value=outcome.value, answers=outcome.answers, usage=Usage(stored=1), dropped=outcome.dropped)
        return await self._first(key, task, input)

    async def stream(self, task: Task[I, str], input: I) -> AsyncGenerator[str | Outcome[str]]:
        """Text as it comes, then one Outcome with the whole text. Neither stored nor repaired: it was already read."""
        reply: Reply | None = None
        thoughts = _Thoughts()
        model = self._model(task.role)
        pieces = model.stream(task.messages(input), max_tokens=task.max_tokens)
        async with aclosing(pieces) as stream:  # type: ignore[type-var]
            async for piece in stream:
                if isinstance(piece, Reply):
                    reply = piece
                elif said := thoughts.without(piece):
                    yield said
        if reply is None:
            raise OutputError("The stream ended without a reply.", subject=task.name)
        self._paid(task.role, reply.usage)
        parsed = self._parsed(task, input, reply)
        yield Outcome(value=parsed.value, usage=reply.usage, dropped=parsed.dropped)

    async def aclose(self) -> None:
        """Close every model once."""
        for model in {id(model): model for model in self._models.values()}.values():
            await model.aclose()

    async def _first(self, key: str, task: Task[I, O], input: I) -> Outcome[O]:
        """Ask on behalf of everyone who asks the same meanwhile; one of them takes over if this one is cancelled."""
        asked: asyncio.Future[Outcome[Any] | Exception | None] = asyncio.get_running_loop().create_future()
        self._asked[key] = asked
        result: Outcome[O] | Exception | None = None
        try:
            result = await self._answer(key, task, input)
        except Exception as error:
            result = error
            raise
        finally:
            if self._asked.get(key) is asked:
                del self._asked[key]
            asked.set_result(result)
        return result

    async def _answer(self, key: str, task: Task[I, O], input: I) -> Outcome[O]:
        stored = await self._stored(key, task, input)
        if stored is not None:
            return stored
        reply = await self._model(task.role).complete(task.messages(input), max_tokens=task.max_tokens)
        usage = self._paid(task.role, reply.usage)
        text = reply.text
        for _ in range(TURNS_BEFORE_READING):
            await asyncio.sleep(0)
        try:
            parsed = self._parsed(task, input, reply)
        except OutputError as error:
            text, parsed, fixing = await self._repaired(task, input, without_reasoning(text), error)
            usage += fixing
        if reply.finish == "length" or not task.stored or self._writer is None:
            return Outcome(value=parsed.value, usage=usage, dropped=parsed.dropped)
        await self._writer.put(key, text.encode("utf-8", "surrogatepass"))
        return Outcome(value=parsed.value, answers=(key,), usage=usage, dropped=parsed.dropped)

    async def _stored(self, key: str, task: Task[I, O], input: I) -> Outcome[O] | None:
        """The stored answer, unless it no longer parses: then it is asked anew and replaced."""
        answers = self._answers
        if answers is None or not task.stored or not self._reuse:
            return None
        found = await asyncio.to_thread(answers.get_many, [key]) if self._threads else answers.get_many([key])
        body = found.get(key)
        if body is None:
            return None
        try:
            parsed = task.parse(without_reasoning(body.decode("utf-8", "surrogatepass")), input, False)
        except (OutputError, UnicodeDecodeError):
            return None
        return Outcome(value=parsed.value, answers=(key,), usage=Usage(stored=1), dropped=parsed.dropped)

    def _parsed(self, task: Task[I, O], input: I, reply: Reply) -> Parsed[O]:
        """Raises OutputError (worth a repair), TruncatedError, RejectedError."""
        if reply.finish == "filter":
            raise RejectedError(f"The provider's content filter refused '{task.name}'.", subject=task.name)
        cut = reply.finish == "length"
        try:
            parsed = task.parse(without_reasoning(reply.text), input, cut)
        except OutputError as error:
            if not cut:
                raise
            raise TruncatedError(
                f"The reply to '{task.name}' was cut off before anything was complete.",
                subject=task.name,
                remedy="Raise max_output_tokens of this role's model, or make the text units smaller.",
            ) from error
        return Parsed(value=parsed.value, dropped=max(parsed.dropped, 1)) if cut else parsed

    async def _repaired(self, task: Task[I, O], input: I, text: str, error: OutputError) -> tuple[str, Parsed[O], Usage]:
        """(repaired reply, what it says, what the repair cost), or OutputError with the first reply."""
        question = FixInput(instructions=task.instructions, reply=text, problem=error.message)
        failure = OutputError(
            f"The reply to '{task.name}' does not have the form asked for, and repairing it failed too. {error.message}",
            subject=task.name,
            remedy="A larger model, or another one for the role 'fixing', may do better.",
            reply=text,
        )
        reply = await self._model(FIX.role).complete(FIX.messages(question), max_tokens=FIX.max_tokens)
        usage = self._paid(FIX.role, reply.usage)
        if reply.finish != "stop":
            raise failure
        try:
            return reply.text, task.parse(without_reasoning(reply.text), input, False), usage
        except ItemError as second:
            raise failure from second

    def _model(self, role: str) -> ChatModel:
        return self._models.get(role) or self._models[DEFAULT]

    def _paid(self, role: str, usage: Usage) -> Usage:
        self.usage[role] = self.usage.get(role, Usage()) + usage
        return usage


class _Thoughts:
    """Holds back a reasoning model's thoughts at the beginning of a stream."""

    _TAG = "<think"

    def __init__(self) -> None:
        self._held = ""
        self._over = False

    def without(self, piece: str) -> str:
        """What of the text so far may be shown now."""
        if self._over:
            return piece
        self._held += piece
        begun = self._held.lstrip()
        if not self._TAG.startswith(begun[: len(self._TAG)]):
            self._over = True
            return self._held
        said = without_reasoning(self._held).lstrip() if len(begun) > len(self._TAG) else ""
        self._over = bool(said)
        return said
