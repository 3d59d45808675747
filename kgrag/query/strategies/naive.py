"""naive: text units by words and meaning, no graph.

LightRAG's ``naive`` mode ranks chunks by vector alone; here the request's search type decides and both is the default
(unified-kg-rag §6.2). ``search_type="vector"`` is LightRAG's, and MS GraphRAG's basic search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgrag.query.found import Found
from kgrag.query.question import Question
from kgrag.query.strategies.strategy import StrategySpec

if TYPE_CHECKING:
    from kgrag.query.settings import SearchSettings


class Naive:
    """Two rankings of text units, ``candidates`` long each."""

    def __init__(self, candidates: int) -> None:
        self._candidates = candidates

    async def find(self, question: Question) -> Found:
        await question.embed()
        calls = question.rankings("text_units", max(self._candidates, question.top_k), name="text_units")
        return Found(legs=list(await question.access.together(*calls)))


def _make(settings: SearchSettings) -> Naive:
    return Naive(settings.candidates)


SPEC = StrategySpec(
    name="naive",
    summary="Text units by words and meaning; no graph.",
    methodology="lightrag",
    artifacts=frozenset({"text_units"}),
    make=_make,
    aliases=("basic",),
)
