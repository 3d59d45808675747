"""What a question to a model is, and what an engine that answers it promises."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import msgspec

from kgrag.ids import digest
from kgrag.ports import Message
from kgrag.records import Usage

I = TypeVar("I", bound=msgspec.Struct)  # noqa: E741
O = TypeVar("O")  # noqa: E741


@dataclass(frozen=True, kw_only=True, slots=True)
class Parsed(Generic[O]):
    """What a reply says. ``dropped`` counts the incomplete or malformed items left out."""

    value: O
    dropped: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Task(Generic[I, O]):
    """A question the system puts to a model.

    ``instructions`` are the same for every input (the system message, which servers cache by prefix); ``render`` turns
    an input into the user message, with document text as delimited data (``tasks.data``), never as a format string.
    ``parse(reply, input, cut)`` reads a reply, keeping every complete item of a cut-off one, and raises OutputError
    where nothing of the task's form is there. ``stored`` says whether accepted replies are kept in the AnswerStore.
    ``version`` grows when ``parse`` accepts other replies than before; prompts count by their text."""

    name: str
    role: str
    instructions: str
    render: Callable[[I], str]
    parse: Callable[[str, I, bool], Parsed[O]]
    stored: bool = True
    version: int = 1
    max_tokens: int | None = None
    identity: str = field(init=False)
    """Digest of what the task itself decides of its answers."""

    def __post_init__(self) -> None:
        own = (self.name, str(self.version), self.instructions, str(self.max_tokens))
        object.__setattr__(self, "identity", digest("task", *own))

    def messages(self, input: I) -> list[Message]:
        """The whole prompt."""
        return [Message("system", self.instructions), Message("user", self.render(input))]


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
