"""simple: every collection the index holds, by words and meaning, no graph (unified-kg-rag §6.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgrag.ports import Collection
from kgrag.query.found import Found
from kgrag.query.question import KIND_OF, Question
from kgrag.query.strategies.strategy import StrategySpec

if TYPE_CHECKING:
    from kgrag.query.settings import SearchSettings

_SWEPT: tuple[Collection, ...] = ("text_units", "entities", "relationships", "reports", "claims")


class Simple:
    """Two rankings per collection. Reports carry no filter fields, so a filter leaves them out."""

    def __init__(self, candidates: int) -> None:
        self._candidates = candidates

    async def find(self, question: Question) -> Found:
        await question.embed()
        swept = [c for c in _SWEPT if c in question.held and KIND_OF[c] in question.kinds]
        if question.filter is not None and "reports" in swept:
            swept.remove("reports")
            question.notes.append("Reports carry no filter fields and were left out.")
        calls = [call for c in swept for call in question.rankings(c, max(self._candidates, question.top_k), name=c)]
        return Found(legs=list(await question.access.together(*calls)))


def _make(settings: SearchSettings) -> Simple:
    return Simple(settings.candidates)


SPEC = StrategySpec(
    name="simple",
    summary="Everything the index holds, by words and meaning; no graph.",
    methodology="graphrag",
    artifacts=frozenset({"text_units"}),
    make=_make,
)
