"""What each methodology needs of an index, and so what a run builds."""

from __future__ import annotations

from collections.abc import Collection as Container
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from kgrag.ports import COLLECTIONS, Collection, Embedder
from kgrag.section import Section

Methodology = Literal["graphrag", "lightrag", "hipporag", "raptor"]

METHODOLOGIES: Mapping[Methodology, frozenset[str]] = {
    "graphrag": frozenset({"text_units", "entities", "relationships", "graph", "communities", "reports"}),
    "lightrag": frozenset({"text_units", "entities", "relationships", "relationship_vectors", "graph"}),
    "hipporag": frozenset({"text_units", "entities", "relationships", "relationship_vectors", "graph"}),
    "raptor": frozenset({"text_units", "summary_tree"}),
}
"""Artifacts that each methodology reads (unified-kg-rag §4.6). ``relationship_vectors`` is the reference's name for
relationships that can be searched for, lexically or by vector."""

BUILT: frozenset[str] = frozenset(
    {"text_units", "entities", "relationships", "relationship_vectors", "graph", "communities", "reports"}
)
"""Artifacts this version knows how to build."""


class IndexSettings(Section):
    """What a run builds."""

    methodologies: list[Methodology] = ["graphrag", "lightrag"]
    """Methods whose index is built. From the reference."""
    language: str = "en"
    """Language that words are stemmed in."""
    vectors: list[Collection] | Literal["auto"] = "auto"
    """Collections whose rows get vectors. `auto`: all of them, but only text units and reports where the embedding model
    is a heavy one that runs on this machine (about six passages a second and core)."""
    batch_size: int = 32
    """Passages per call of the embedder."""


class BuildRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the last run left behind, kept by the registry under ``build``. ``embedding`` and ``analyzer`` are the
    identities of what made vectors and tokens; ``keys`` those of every setting that decides derived rows."""

    artifacts: list[str] = []
    methodologies: list[str] = []
    embedding: str = ""
    dimension: int = 0
    strong: bool = False
    vectors: list[Collection] = []
    analyzer: str = ""
    language: str = ""
    keys: dict[str, str] = {}


def artifacts_of(settings: IndexSettings) -> frozenset[str]:
    """What the selected methodologies read, text units at the least."""
    wanted: set[str] = {"text_units"}
    for name in settings.methodologies:
        wanted |= METHODOLOGIES[name]
    return frozenset(wanted & BUILT)


def methodologies_held(artifacts: Iterable[str]) -> list[Methodology]:
    """The methodologies whose every artifact is there."""
    held = set(artifacts)
    return [name for name, needed in METHODOLOGIES.items() if needed <= held]


def collections_with_vectors(settings: IndexSettings, embedder: Embedder | None) -> frozenset[Collection]:
    """Which collections' rows get vectors."""
    if embedder is None:
        return frozenset()
    if settings.vectors != "auto":
        return frozenset(settings.vectors)
    heavy = embedder.strong and not embedder.remote
    return _HEAVY if heavy else frozenset(COLLECTIONS)


def builds_graph(artifacts: Container[str]) -> bool:
    return "entities" in artifacts


def builds_communities(artifacts: Container[str]) -> bool:
    return "reports" in artifacts


_HEAVY: frozenset[Collection] = frozenset({"text_units", "reports"})
