"""LightRAG's dual-level retrieval, the common part of ``hybrid`` and ``mix``.

Low-level keywords find entities, high-level keywords find relationships; both bring their one-hop neighbours and the text
units they cite; mix adds text units found for the question itself (LightRAG ``operate.py``, parity steps 1-6; differences
of unified-kg-rag §6.2: lineage is read in id order, the sides' units are rankings of their own instead of a round robin)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from kgrag.ports import Scored, Vertex
from kgrag.query import walk
from kgrag.query.chunks import pick_weighted
from kgrag.query.found import Found
from kgrag.query.fuse import Leg, by_place, fuse
from kgrag.query.question import Question
from kgrag.section import Section
from kgrag.text import count_tokens

_LATIN_CHARS_PER_TOKEN = 4


class DualLevelSettings(Section):
    """Entities, relationships and the text units they cite."""

    top_k: int = Field(default=40, ge=1)
    """Entities, and relationships, found for the keywords (LightRAG's ``top_k``)."""
    related_chunk_number: int = Field(default=5, ge=1)
    """Text units the best item may bring (LightRAG's)."""
    chunk_stream_top_k: int = Field(default=20, ge=1)
    """Text units either side brings in all (LightRAG's ``chunk_top_k``)."""
    kg_chunk_pick_method: Literal["weight", "vector"] = "weight"
    """How cited units are picked: by weighted polling, or those nearest to the question."""
    linked_weight: float = Field(default=0.3, ge=0)
    """What a ranking of cited units counts against a ranking by words (1)."""
    raw_query_fallback_max_len: int = Field(default=50, ge=0)
    """A question shorter than this stands for its own keywords where none were found (characters; one of a dense script
    counts as four)."""
    max_edges_per_vertex: int = Field(default=20, ge=1)
    """Relationships read per found entity."""


class DualLevel:
    """``candidates`` > 0 adds the question's own text units (mix)."""

    def __init__(self, settings: DualLevelSettings, candidates: int) -> None:
        self._settings = settings
        self._candidates = candidates

    async def find(self, question: Question) -> Found:
        own = self._settings
        low, high = await self._levels(question)
        embedded = [low] if "entities" in question.vectors else []
        embedded += [high] if "relationships" in question.vectors else []
        await question.embed(*embedded)
        calls = question.rankings("entities", own.top_k, name="entities", text=low) if low else []
        calls += question.rankings("relationships", own.top_k, name="relationships", text=high) if high else []
        if self._candidates:
            calls += question.rankings("text_units", max(self._candidates, question.top_k), name="text_units")
        legs = await question.access.together(*calls)
        entities = fuse([leg for leg in legs if leg.kind == "entity"])[: own.top_k]
        relations = fuse([leg for leg in legs if leg.kind == "relationship"])[: own.top_k]
        vertices = await walk.vertices(question, (item.id for item in entities))
        found = [vertices[item.id] for item in entities if item.id in vertices]
        facts = [fact for _, fact in await walk.facts(question, [Scored(item.id, item.score) for item in relations])]
        cited = await self._cited(question, found, facts)
        return Found(legs=[*legs, *cited, *await self._neighbours(question, found, facts)])

    async def _levels(self, question: Question) -> tuple[str, str]:
        keywords = await question.keywords()
        low, high = ", ".join(keywords.low), ", ".join(keywords.high)
        if low or high:
            return low, high
        if count_tokens(question.text) * _LATIN_CHARS_PER_TOKEN < self._settings.raw_query_fallback_max_len:
            return question.text, ""
        question.notes.append("No keywords were found in the question; the graph was not searched.")
        return "", ""

    async def _cited(self, question: Question, entities: Sequence[Vertex], facts: Sequence[walk.Fact]) -> list[Leg]:
        own = self._settings
        sides = ([v.text_unit_ids for v in entities], [f.text_unit_ids for f in facts])
        if own.kg_chunk_pick_method == "vector" and "text_units" in question.vectors:
            linked = await self._nearest(question, sides[0], frozenset())
            relation = await self._nearest(question, sides[1], frozenset(linked))
        else:
            linked = pick_weighted(sides[0], own.related_chunk_number)
            relation = pick_weighted(sides[1], own.related_chunk_number, frozenset(linked))
        passing = await walk.passing_units(question, [*linked, *relation])
        return [
            Leg(name, "text_unit", by_place([id for id in ids if id in passing][: own.chunk_stream_top_k]), own.linked_weight)
            for name, ids in (("linked_text_units", linked), ("relation_text_units", relation))
        ]

    async def _nearest(self, question: Question, lineages: Sequence[Sequence[str]], left_out: frozenset[str]) -> list[str]:
        """LightRAG's VECTOR pick: of all cited units the int(number * items / 2) nearest to the question."""
        pool = sorted({id for lineage in lineages for id in lineage} - left_out)
        many = self._settings.related_chunk_number * len(lineages) // 2
        calls = question.rankings("text_units", many, name="cited", ids=pool, search_type="vector") if pool and many else []
        return [item.id for leg in await question.access.together(*calls) for item in leg.ranked]

    async def _neighbours(self, question: Question, entities: Sequence[Vertex], facts: Sequence[walk.Fact]) -> list[Leg]:
        """One hop, as far as it is asked for: relationships of the entities, by (sum of the ends' degrees, weight), and
        ends of the relationships in the order they appear."""
        legs: list[Leg] = []
        if "relationship" in question.kinds and entities:
            edges = await walk.edges_at(question, (v.id for v in entities), self._settings.max_edges_per_vertex)
            ends = await walk.vertices(question, (end for e in edges for end in (e.source_id, e.target_id)))
            rank = {e.id: sum(ends[end].rank for end in (e.source_id, e.target_id) if end in ends) for e in edges}
            edges.sort(key=lambda e: (-rank[e.id], -e.weight, e.id))
            legs.append(Leg("entity_relationships", "relationship", by_place([e.id for e in edges[: self._settings.top_k]])))
        if "entity" in question.kinds and facts:
            ids = list(dict.fromkeys(end for fact in facts for end in (fact.source_id, fact.target_id)))
            known = await walk.vertices(question, ids)
            legs.append(Leg("relationship_entities", "entity", by_place([id for id in ids if id in known])))
        return legs
