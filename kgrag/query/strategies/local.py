"""local: entities of the question, their neighbourhood, and the text units, relationships and reports around them.

MS GraphRAG's local search in the form of unified-kg-rag §6.1: each name is looked up on its own, the seeds share the
expansion's budget by their scores, text units are ranked by a Personalized PageRank (§6.4, "local ranking"; ``support``
is the plain order), reports are the most similar ones or those of the entities' communities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from kgrag.ids import compact_key, entity_id
from kgrag.ports import Edge, Scored, Vertex
from kgrag.query import walk
from kgrag.query.found import Found
from kgrag.query.fuse import Leg, by_place, fuse
from kgrag.query.pagerank import passage_seeds
from kgrag.query.question import Question
from kgrag.query.strategies.ppr import PprSettings, passage_graph, rank_passages, ranked
from kgrag.query.strategies.strategy import StrategySpec
from kgrag.section import Section

if TYPE_CHECKING:
    from kgrag.query.settings import SearchSettings

_NAMESAKES = 5
"""Hits per name that are compared with it."""


class LocalSettings(Section):
    """Seeds, expansion and sections."""

    seed_score_ratio: float = Field(default=0.6, ge=0, le=1)
    """A name without an entity of that name is stood for by its best hit, if that scores at least this share of the best
    hit of any name."""
    max_hops: int = Field(default=2, ge=1, le=5)
    """Depth of the expansion, in edges."""
    max_expanded_entities: int = Field(default=50, ge=1)
    """Entities besides the seeds."""
    max_edges_per_vertex: int = Field(default=50, ge=1)
    """Relationships read per entity."""
    entity_frequency_threshold: int = Field(default=20, ge=1)
    """An expanded entity cited by more text units is left out as too common."""
    text_unit_ranking: Literal["ppr", "support"] = "ppr"
    """By PageRank, or by how many of the entities cite a unit, seeds' first."""
    ppr_seed_relationships: int = Field(default=5, ge=0)
    """Relationships found for the question that seed the PageRank."""
    include_bridge_relationships: bool = True
    """Relationships of the entities, those between two of them first, beside those found for the question."""
    report_selection: Literal["similarity", "membership"] = "similarity"
    """Reports most similar to the names, or of the finest communities of the entities."""


class Local:
    """Rankings ``local_text_units``, ``local_entities``, ``bridge_relationships``, and those of the sections searched for."""

    def __init__(self, settings: LocalSettings, ppr: PprSettings) -> None:
        self._settings = settings
        self._ppr = ppr

    async def find(self, question: Question) -> Found:
        own = self._settings
        names = (await question.entities()) or [question.text]
        seeds, legs = await self._look_up(question, names)
        passages = ranked(legs, "text_units", self._ppr.passage_seed_top_k)
        facts = await walk.facts(question, ranked(legs, "facts", own.ppr_seed_relationships))
        reached = await walk.expand(
            question, walk.shares(seeds, own.max_expanded_entities), hops=own.max_hops, cap=own.max_edges_per_vertex
        )
        ends = {end for _, fact in facts for end in (fact.source_id, fact.target_id)}
        vertices = await walk.vertices(question, {*reached, *ends})
        kept = {id: v for id, v in vertices.items() if id in seeds or len(v.text_unit_ids) <= own.entity_frequency_threshold}
        order = await self._order(question, kept, seeds, facts, passages)
        pool = max(2 * question.top_k, 20)
        passing = await walk.passing_units(question, (item.id for item in order[: 2 * pool]))
        found = [leg for leg in legs if leg.kind != "text_unit" and not leg.name.startswith(("facts_", "name_"))]
        found.append(Leg("local_text_units", "text_unit", [item for item in order if item.id in passing][:pool]))
        found.append(Leg("local_entities", "entity", _by_distance(kept, reached, seeds)))
        if "relationship" in question.kinds and own.include_bridge_relationships:
            found.append(Leg("bridge_relationships", "relationship", await self._bridges(question, kept)))
        if self._by_membership(question):
            found.append(Leg("member_reports", "report", await self._member_reports(question, kept)))
        return Found(legs=found)

    # -- seeds and sections: one round of searches

    async def _look_up(self, question: Question, names: Sequence[str]) -> tuple[dict[str, float], tuple[Leg, ...]]:
        """Seed entities with their scores, and every ranking made on the way."""
        by_id = {entity_id(compact_key(name)): name for name in names}
        exact = await walk.vertices(question, by_id)
        open_names = [name for id, name in by_id.items() if id not in exact]
        joined = ", ".join(names)
        reports = "report" in question.kinds and not self._by_membership(question)
        embedded = open_names if "entities" in question.vectors else []
        await question.embed(*embedded, *([joined] if reports and "reports" in question.vectors else []))
        calls = [
            call
            for number, name in enumerate(open_names)
            for call in question.rankings("entities", _NAMESAKES, name=f"name_{number}", text=name)
        ]
        calls += self._searches(question, joined, reports)
        legs = await question.access.together(*calls)
        seeds = dict.fromkeys(exact, 1.0)
        if open_names:
            seeds.update(await self._namesakes(question, open_names, legs, dict(seeds)))
        return seeds, legs

    def _searches(self, question: Question, joined: str, reports: bool) -> list[Callable[[], Leg]]:
        own, ppr = self._settings, self._ppr
        calls = question.rankings("text_units", ppr.passage_seed_top_k, name="text_units")
        fact_type = question.search_type if ppr.fact_search_type == "request" else ppr.fact_search_type
        calls += question.rankings("relationships", own.ppr_seed_relationships, name="facts", search_type=fact_type)
        if "relationship" in question.kinds:
            calls += question.rankings("relationships", question.top_k, name="relationships")
        if "claim" in question.kinds and "claims" in question.held:
            calls += question.rankings("claims", question.top_k, name="claims")
        if reports and question.filter is None:
            calls += question.rankings("reports", max(question.top_k // 2, 1), name="reports", text=joined)
        return calls

    async def _namesakes(
        self, question: Question, names: Sequence[str], legs: Sequence[Leg], exact: dict[str, float]
    ) -> dict[str, float]:
        """For each name the entities that bear it; without one its best hit, if that is near the best hit of any name."""
        hits = [fuse([leg for leg in legs if leg.name.startswith(f"name_{n}_")])[:_NAMESAKES] for n in range(len(names))]
        known = await walk.vertices(question, (item.id for each in hits for item in each))
        floor = self._settings.seed_score_ratio * max([1.0 for _ in exact] + [each[0].score for each in hits if each], default=0.0)
        seeds: dict[str, float] = {}
        for name, each in zip(names, hits, strict=True):
            key = compact_key(name)
            same = [item for item in each if item.id in known and compact_key(known[item.id].name) == key]
            near = [item for item in each[:1] if item.id in known and item.score >= floor]
            for item in same or near:
                seeds[item.id] = max(seeds.get(item.id, 0.0), item.score)
        return seeds

    # -- text units

    async def _order(
        self,
        question: Question,
        kept: dict[str, Vertex],
        seeds: dict[str, float],
        facts: Sequence[tuple[float, walk.Fact]],
        passages: list[Scored],
    ) -> list[Scored]:
        if self._settings.text_unit_ranking == "ppr":
            edges = await walk.edges_among(question, kept, self._ppr.max_edges_per_vertex)
            graph = passage_graph(kept, edges, passages, self._ppr)
            weights = summed_seeds(seeds, facts, {id: len(v.text_unit_ids) for id, v in kept.items()})
            order = rank_passages(graph, {**weights, **passage_seeds(passages, self._ppr.passage_node_weight)}, self._ppr)
            if order:
                return order
        return by_support(kept, seeds) or passages

    # -- other kinds

    async def _bridges(self, question: Question, kept: dict[str, Vertex]) -> list[Scored]:
        """Relationships at the entities: those between two of them first, then by the sum of the ends' degrees."""
        edges = await walk.edges_at(question, kept, self._settings.max_edges_per_vertex)
        degree = {id: vertex.rank for id, vertex in kept.items()}

        def place(edge: Edge) -> tuple[int, float, str]:
            ends = [degree[end] for end in (edge.source_id, edge.target_id) if end in degree]
            return (-len(ends), -sum(ends) - edge.weight / (1 + edge.weight), edge.id)

        return by_place([edge.id for edge in sorted(edges, key=place)])

    def _by_membership(self, question: Question) -> bool:
        return self._settings.report_selection == "membership" and "report" in question.kinds and question.filter is None

    async def _member_reports(self, question: Question, kept: dict[str, Vertex]) -> list[Scored]:
        """Reports of the entities' finest communities, most matched entities first, then by id."""
        wanted = sorted(kept)
        found = await question.access.one(lambda: question.access.graph.communities_of(wanted))
        matches = Counter(ids[0] for ids in found.values() if ids)
        best = sorted(matches.items(), key=lambda pair: (-pair[1], pair[0]))
        return [Scored(id, float(many)) for id, many in best[: max(question.top_k // 2, 1)]]


def summed_seeds(
    seeds: Mapping[str, float], facts: Sequence[tuple[float, walk.Fact]], citations: Mapping[str, int]
) -> dict[str, float]:
    """Reset weights of local's PageRank (unified-kg-rag §6.4): per entity its own seed score plus the mean score of the
    facts that name it, relative to the best, divided by the number of text units that cite it (at least 1)."""
    best = max((score for score, _ in facts), default=0.0)
    named: dict[str, list[float]] = {}
    for score, fact in facts:
        for end in {fact.source_id, fact.target_id}:
            named.setdefault(end, []).append(score / best if best > 0 else 1.0)
    return {
        id: (seeds.get(id, 0.0) + (sum(named[id]) / len(named[id]) if id in named else 0.0)) / max(count, 1)
        for id, count in citations.items()
        if id in seeds or id in named
    }


def by_support(kept: Mapping[str, Vertex], seeds: Mapping[str, float]) -> list[Scored]:
    """Text units by the seed scores, then by the number, of the entities that cite them, ties by id. A unit that only
    entities without a seed score cite scores below one per seed."""
    support: dict[str, float] = {}
    for id, vertex in kept.items():
        for unit in vertex.text_unit_ids:
            support[unit] = support.get(unit, 0.0) + seeds.get(id, 0.0) + 1 / (1 + len(kept))
    return [Scored(id, score) for id, score in sorted(support.items(), key=lambda pair: (-pair[1], pair[0]))]


def _by_distance(kept: Mapping[str, Vertex], reached: Mapping[str, int], seeds: Mapping[str, float]) -> list[Scored]:
    """Seeds by score, then by distance and degree."""
    far = max(reached.values(), default=0) + 1
    order = sorted(kept, key=lambda id: (-seeds.get(id, 0.0), reached.get(id, far), -kept[id].rank, id))
    return by_place(order)


def _make(settings: SearchSettings) -> Local:
    return Local(settings.local, settings.ppr)


SPEC = StrategySpec(
    name="local",
    summary="GraphRAG local: entities of the question, their neighbourhood and its text units, relationships and reports.",
    methodology="graphrag",
    artifacts=frozenset({"text_units", "entities", "relationships", "graph", "communities", "reports"}),
    make=_make,
)
