"""The engine that answers tasks without a model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from math import log2
from typing import Any, TypeVar, cast

import msgspec

from kgrag.backends.local.extractive.answering import asked_names, best_sentences, key_points, question_keywords
from kgrag.backends.local.extractive.claims import dated_claims
from kgrag.backends.local.extractive.extract import extract
from kgrag.backends.local.extractive.salience import central
from kgrag.engine import Outcome, Task
from kgrag.errors import ConfigurationError
from kgrag.ids import digest
from kgrag.records import Finding
from kgrag.tasks.descriptions import DescriptionInput
from kgrag.tasks.extraction import Extraction
from kgrag.tasks.reports import ReportInput, ReportText

I = TypeVar("I", bound=msgspec.Struct)  # noqa: E741
O = TypeVar("O")  # noqa: E741

VERSION = "2"
"""Grows when the same input may get another answer."""
_DESCRIPTION_TOKENS = 256
_SUMMARY_TOKENS = 160
_MOST_FINDINGS = 6
_PIECE = 40
"""Characters of a streamed piece."""


def describe(input: DescriptionInput) -> str:
    """The lines nearest to what all of them say."""
    return " ".join(central(input.lines, _DESCRIPTION_TOKENS))


def report(input: ReportInput) -> ReportText:
    """A title of the best connected names, the central lines as summary, one finding per well-connected entity;
    the rating grows with the logarithm of the number of relationships."""
    lines = [r.description for r in input.relationships if r.description] or [e.description or e.name for e in input.entities]
    lines += [child.summary for child in input.children]
    names = [entity.name for entity in input.entities]
    facts: dict[str, list[str]] = {}
    for edge in input.relationships:
        for name in (edge.source, edge.target):
            facts.setdefault(name, []).append(edge.description)
    findings = [
        Finding(summary=f"{name}: {told[0]}", explanation=" ".join(dict.fromkeys(told)))
        for name in names[:_MOST_FINDINGS]
        if (told := [fact for fact in facts.get(name, ()) if fact])
    ]
    connections = len(input.relationships)
    return ReportText(
        title=", ".join(names[:3]) or input.name,
        summary=" ".join(central(list(dict.fromkeys(lines)), _SUMMARY_TOKENS)) or ", ".join(names),
        rating=min(10.0, round(1.5 * log2(1 + connections), 1)),
        rating_explanation=f"{connections} relationships among {len(names)} entities.",
        findings=findings,
    )


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
