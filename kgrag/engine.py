"""Every model call is a typed task; an engine answers tasks.

``Task`` declares a question (``kgrag.tasks`` holds them all), ``Engine`` is who answers: the model engine below,
``backends.local.extractive`` (no model at all) or ``backends.scripted`` (tests).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import msgspec

from kgrag.ports import Message
from kgrag.records import Usage

I = TypeVar("I", bound=msgspec.Struct)  # noqa: E741
O = TypeVar("O")  # noqa: E741


@dataclass(frozen=True, kw_only=True)
class Task(Generic[I, O]):
    """A question the system puts to a model.

    ``render`` turns the input into messages (document text is delimited data, never a format string);
    ``parse`` turns a reply into the output, keeping every complete item of a cut-off one, and raises OutputError
    where nothing of the task's form is there. ``stored`` says whether accepted replies are kept in the AnswerStore."""

    name: str
    role: str
    render: Callable[[I], Sequence[Message]]
    parse: Callable[[str, I], O]
    stored: bool = True
    version: int = 1
    max_tokens: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome(Generic[O]):
    """An answered task. ``answers`` are the keys of the stored replies it was made from; ``dropped`` counts
    the incomplete or malformed items left out."""

    value: O
    answers: tuple[str, ...] = ()
    usage: Usage = Usage()
    dropped: int = 0


class Engine(Protocol):
    """Answers tasks. Concurrency, retries, repair, stored answers and usage are its business."""

    def identity(self, task: Task[I, O]) -> str:
        """What decides this task's answers besides its input: prompt version, model, revision, settings."""
        ...

    async def ask(self, task: Task[I, O], input: I, *, sample: int = 0) -> Outcome[O]:
        """Raises ItemError (this input only), TransientModelError, PermanentModelError."""
        ...

    def stream(self, task: Task[I, str], input: I) -> AsyncIterator[str | Outcome[str]]:
        """Text as it comes, then one Outcome with the whole text."""
        ...

    async def aclose(self) -> None: ...
