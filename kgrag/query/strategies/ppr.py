"""ppr: HippoRAG 2's retrieval. Facts and passages found for the question seed a Personalized PageRank over the entities
around them, and its scores rank the passages (arXiv 2502.14802; steps and values of unified-kg-rag §6.4).

Differences from the original, all the reference's: the graph is the bounded neighbourhood of the seeds; no model filters the
facts; passage seeds are the best hits by words and meaning instead of a score for every passage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from kgrag.ports import Edge, Scored, Vertex
from kgrag.query import walk
from kgrag.query.found import Found
from kgrag.query.fuse import Leg, fuse
from kgrag.query.pagerank import PassageGraph, fact_seeds, passage_seeds, personalized_pagerank
from kgrag.query.question import Question, SearchType
from kgrag.query.strategies.strategy import StrategySpec
from kgrag.section import Section

if TYPE_CHECKING:
    from kgrag.query.settings import SearchSettings


class PprSettings(Section):
    """Seeds, neighbourhood and walk."""

    fact_top_k: int = Field(default=5, ge=0)
    """Relationships found for the question that seed entities (HippoRAG's ``linking_top_k``)."""
    fact_search_type: SearchType | Literal["request"] = "vector"
    """How facts are found: HippoRAG compares the question with facts by vectors; ``request`` as the request searches."""
    passage_seed_top_k: int = Field(default=20, ge=0)
    """Text units found for the question that seed passages."""
    entity_seed_top_k: int = Field(default=0, ge=0)
    """Entities found for the question that seed as facts do."""
    max_hops: int = Field(default=2, ge=1, le=5)
    """Depth of the neighbourhood, in edges."""
    max_neighbourhood_entities: int = Field(default=100, ge=1)
    """Entities besides the seeds."""
    max_edges_per_vertex: int = Field(default=50, ge=1)
    """Relationships read per entity."""
    link_top_k: int = Field(default=5, ge=1)
    """Seed entities that keep their weight."""
    passage_node_weight: float = Field(default=0.05, ge=0)
    """What the best passage seed weighs against a fact's 1 (HippoRAG's value)."""
    relationship_weight: float = Field(default=2.0, gt=0)
    """Weight of a relationship against 1 of a citation: HippoRAG adds each triple in both directions to an undirected graph,
    so a fact weighs two (measured with its own PageRank)."""
    damping: float = Field(default=0.5, gt=0, lt=1)
    """Probability of following an edge."""
    max_iterations: int = Field(default=30, ge=1)
    """Longest power iteration."""
    tolerance: float = Field(default=1e-6, gt=0)
    """L1 change at which the iteration ends."""
    entity_frequency_threshold: int = Field(default=20, ge=1)
    """An entity cited by more text units links to none of them; it still passes its mass on through relationships."""


class Ppr:
    """Two rankings of text units, fused: by PageRank (``ppr_passages``) and as found (``ppr_seed_text_units``), and the
    facts in their order (``ppr_facts``)."""

    def __init__(self, settings: PprSettings) -> None:
        self._settings = settings

    async def find(self, question: Question) -> Found:
        own = self._settings
        await question.embed()
        fact_type = question.search_type if own.fact_search_type == "request" else own.fact_search_type
        legs = await question.access.together(
            *question.rankings("text_units", own.passage_seed_top_k, name="text_units"),
            *question.rankings("relationships", own.fact_top_k, name="facts", search_type=fact_type),
            *(question.rankings("entities", own.entity_seed_top_k, name="entities") if own.entity_seed_top_k else ()),
        )
        passages = ranked(legs, "text_units", own.passage_seed_top_k)
        facts = await walk.facts(question, ranked(legs, "facts", own.fact_top_k))
        entities = ranked(legs, "entities", own.entity_seed_top_k)
        named = [(score, fact.source_id, fact.target_id) for score, fact in facts]
        named += [(hit.score, hit.id, hit.id) for hit in entities]
        reached = await self._neighbourhood(question, named)
        order = await self._rank(question, named, passages, reached)
        pool = max(2 * question.top_k, 20)
        kept = await walk.passing_units(question, (item.id for item in order[: 2 * pool]))
        return Found(
            legs=[
                Leg("ppr_passages", "text_unit", [item for item in order if item.id in kept][:pool]),
                Leg("ppr_seed_text_units", "text_unit", passages),
                Leg("ppr_facts", "relationship", [Scored(fact.id, score) for score, fact in facts]),
            ]
        )

    async def _neighbourhood(self, question: Question, named: list[tuple[float, str, str]]) -> dict[str, Vertex]:
        own = self._settings
        scores: dict[str, float] = {}
        for score, source, target in named:
            for end in {source, target}:
                scores[end] = max(scores.get(end, 0.0), score)
        budget = walk.shares(scores, own.max_neighbourhood_entities)
        reached = await walk.expand(question, budget, hops=own.max_hops, cap=own.max_edges_per_vertex)
        return await walk.vertices(question, {*reached, *scores})

    async def _rank(
        self, question: Question, named: list[tuple[float, str, str]], passages: list[Scored], reached: dict[str, Vertex]
    ) -> list[Scored]:
        own = self._settings
        edges = await walk.edges_among(question, reached, own.max_edges_per_vertex)
        graph = passage_graph(reached, edges, passages, own)
        seeds = fact_seeds(named, {id: len(v.text_unit_ids) for id, v in reached.items()}, own.link_top_k)
        return rank_passages(graph, {**seeds, **passage_seeds(passages, own.passage_node_weight)}, own) or passages


def ranked(legs: tuple[Leg, ...], name: str, top_k: int) -> list[Scored]:
    """The rankings called ``<name>_...`` as one: a single one with its own scores, several by reciprocal ranks."""
    mine = [leg for leg in legs if leg.name.startswith(f"{name}_")]
    if len(mine) == 1:
        return list(mine[0].ranked[:top_k])
    return [Scored(item.id, item.score) for item in fuse(mine)[:top_k]]


def passage_graph(reached: dict[str, Vertex], edges: list[Edge], passages: list[Scored], own: PprSettings) -> PassageGraph:
    """Entities, the text units they cite (unless they cite too many) and the passage seeds."""
    cites = [
        (id, unit)
        for id, vertex in reached.items()
        if len(vertex.text_unit_ids) <= own.entity_frequency_threshold
        for unit in vertex.text_unit_ids
    ]
    return PassageGraph.build(
        reached,
        [*(unit for _, unit in cites), *(hit.id for hit in passages)],
        [(edge.source_id, edge.target_id) for edge in edges],
        cites,
        edge_weight=own.relationship_weight,
    )


def rank_passages(graph: PassageGraph, seeds: dict[str, float], own: PprSettings) -> list[Scored]:
    """Passages by PageRank; empty where the seeds carry no mass."""
    reset = graph.reset(seeds)
    if not reset.any():
        return []
    scores = personalized_pagerank(graph, reset, damping=own.damping, max_iterations=own.max_iterations, tolerance=own.tolerance)
    return graph.ranked_passages(scores)


def _make(settings: SearchSettings) -> Ppr:
    return Ppr(settings.ppr)


SPEC = StrategySpec(
    name="ppr",
    summary="HippoRAG 2: facts and passages seed a Personalized PageRank that ranks passages.",
    methodology="hipporag",
    artifacts=frozenset({"text_units", "entities", "relationships", "relationship_vectors", "graph"}),
    make=_make,
    aliases=("hipporag",),
)
