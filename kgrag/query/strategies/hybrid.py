"""hybrid: LightRAG's dual-level retrieval over the graph alone; text units are those its items cite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgrag.query.strategies.dual import DualLevel
from kgrag.query.strategies.strategy import StrategySpec

if TYPE_CHECKING:
    from kgrag.query.settings import SearchSettings


def _make(settings: SearchSettings) -> DualLevel:
    return DualLevel(settings.dual_level, candidates=0)


SPEC = StrategySpec(
    name="hybrid",
    summary="LightRAG: keywords find entities and relationships; their text units are read.",
    methodology="lightrag",
    artifacts=frozenset({"text_units", "entities", "relationships", "relationship_vectors", "graph"}),
    make=_make,
)
