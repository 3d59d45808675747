"""mix: LightRAG's dual-level retrieval and text units found for the question itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgrag.query.strategies.dual import DualLevel
from kgrag.query.strategies.strategy import StrategySpec

if TYPE_CHECKING:
    from kgrag.query.settings import SearchSettings


def _make(settings: SearchSettings) -> DualLevel:
    return DualLevel(settings.dual_level, candidates=settings.candidates)


SPEC = StrategySpec(
    name="mix",
    summary="LightRAG: hybrid, and text units found by words and meaning.",
    methodology="lightrag",
    artifacts=frozenset({"text_units", "entities", "relationships", "relationship_vectors", "graph"}),
    make=_make,
    aliases=("lightrag",),
)
