"""The engine that answers tasks without a model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar, cast

import msgspec

from kgrag.backends.local.extractive.answering import asked_names, best_sentences, key_points, question_keywords
from kgrag.backends.local.extractive.claims import dated_claims
from kgrag.backends.local.extractive.extract import extract
from kgrag.backends.local.extractive.summaries import describe, report
from kgrag.engine import Outcome, Task
from kgrag.errors import ConfigurationError
from kgrag.ids import digest
from kgrag.tasks.extraction import Extraction

I = TypeVar("I", bound=msgspec.Struct)  # noqa: E741
O = TypeVar("O")  # noqa: E741

VERSION = "2"
"""Grows when the same input may get another answer."""
_PIECE = 40
"""Characters of a streamed piece."""


_ANSWERS: dict[str, Callable[[Any], Any]] = {
    "extract": extract,
    "glean": lambda input: Extraction(),
    "claims": dated_claims,
    "describe": describe,
    "report": report,
    "keywords": lambda input: question_keywords(input.question),
    "query_entities": lambda input: asked_names(input.question),
    "map_reports": key_points,
    "answer": best_sentences,
}
"""Gleaning finds nothing more: reading is exhaustive the first time."""


class ExtractiveEngine:
    """``kgrag.engine.Engine`` by text statistics. Costs no call; raises ConfigurationError for a task it has no rule for."""

    def identity(self, task: Task[I, O]) -> str:
        return digest("extractive", VERSION, task.name)

    async def ask(self, task: Task[I, O], input: I, *, sample: int = 0) -> Outcome[O]:
        answer = _ANSWERS.get(task.name)
        if answer is None:
            raise ConfigurationError(
                f'The extractive engine has no rule for the task "{task.name}".',
                subject=task.name,
                remedy="Configure a model for it (models.default.provider: openai).",
            )
        return Outcome(value=cast(O, answer(input)))

    async def stream(self, task: Task[I, str], input: I) -> AsyncIterator[str | Outcome[str]]:
        outcome = await self.ask(task, input)
        for at in range(0, len(outcome.value), _PIECE):
            yield outcome.value[at : at + _PIECE]
        yield outcome

    async def aclose(self) -> None:
        """Nothing is held."""
