"""Walking the graph from seed entities, with or without a filter, and reading what was reached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kgrag.ports import Edge, Scored, Vertex
from kgrag.query.question import Question
from kgrag.records import decode


class Fact(msgspec.Struct, frozen=True):
    """The part of a stored relationship that ranking reads."""

    id: str
    source_id: str
    target_id: str
    text_unit_ids: list[str] = []
    weight: float = 0.0


def shares(scores: Mapping[str, float], budget: int) -> dict[str, int]:
    """How many new entities each seed may bring: ``budget`` in proportion to its score, at least one each."""
    total = sum(scores.values())
    if total <= 0:
        return {id: max(budget // max(len(scores), 1), 1) for id in scores}
    return {id: max(int(budget * score / total), 1) for id, score in scores.items()}


async def expand(question: Question, seeds: Mapping[str, int], *, hops: int, cap: int) -> dict[str, int]:
    """Entities within ``hops`` of the seeds with their distance; ``seeds`` says how many new ones each may bring, ``cap``
    how many edges are read per entity. Under a filter only edges and entities that pass it are walked."""
    if not seeds:
        return {}
    if question.filter is None:
        return await question.access.one(lambda: question.access.graph.expand(seeds, hops=hops, cap=cap))
    return await _filtered(question, seeds, hops=hops, cap=cap)


async def vertices(question: Question, ids: Iterable[str]) -> dict[str, Vertex]:
    """The entities of these ids that exist and, under a filter, pass it."""
    wanted = sorted(set(ids))
    where = question.filter
    if not wanted:
        return {}
    if where is None:
        return await question.access.one(lambda: question.access.graph.vertices(wanted))
    found, passing = await question.access.together(
        lambda: question.access.graph.vertices(wanted),
        lambda: question.access.search.passing("entities", wanted, where),
    )
    return {id: vertex for id, vertex in found.items() if id in passing}


async def edges_among(question: Question, ids: Iterable[str], cap: int) -> list[Edge]:
    """Edges with both ends in the set; under a filter those that pass it."""
    wanted = sorted(set(ids))
    found = await question.access.one(lambda: question.access.graph.among(wanted, cap=cap)) if wanted else []
    return await _passing_edges(question, found)


async def edges_at(question: Question, ids: Iterable[str], cap: int) -> list[Edge]:
    """Edges at any of these entities; under a filter those that pass it."""
    wanted = sorted(set(ids))
    found = await question.access.one(lambda: question.access.graph.incident(wanted, cap=cap)) if wanted else []
    return await _passing_edges(question, found)


async def facts(question: Question, hits: Sequence[Scored]) -> list[tuple[float, Fact]]:
    """The relationships behind hits, with their scores, in the hits' order."""
    ids = [hit.id for hit in hits]
    bodies = await question.access.one(lambda: question.access.search.get("relationships", ids)) if ids else {}
    return [(hit.score, decode(bodies[hit.id], Fact)) for hit in hits if hit.id in bodies]


async def passing_units(question: Question, ids: Iterable[str]) -> set[str]:
    """Those of these text units that pass the question's filter."""
    wanted = sorted(set(ids))
    where = question.filter
    if where is None or not wanted:
        return set(wanted)
    return await question.access.one(lambda: question.access.search.passing("text_units", wanted, where))


async def _passing_edges(question: Question, found: list[Edge]) -> list[Edge]:
    where = question.filter
    if where is None or not found:
        return found
    ids = [edge.id for edge in found]
    passing = await question.access.one(lambda: question.access.search.passing("relationships", ids, where))
    return [edge for edge in found if edge.id in passing]


async def _filtered(question: Question, seeds: Mapping[str, int], *, hops: int, cap: int) -> dict[str, int]:
    known = await vertices(question, seeds)
    reached = {id: 0 for id in seeds if id in known}
    origin = {id: id for id in reached}
    left = {id: seeds[id] for id in reached}
    frontier = list(reached)
    for hop in range(1, hops + 1):
        found = await edges_at(question, (id for id in frontier if left[origin[id]] > 0), cap)
        steps = [(a, b) for e in found for a, b in ((e.source_id, e.target_id), (e.target_id, e.source_id)) if a in reached]
        passing = await vertices(question, (b for _, b in steps if b not in reached))
        frontier = []
        for a, b in steps:
            seed = origin[a]
            if reached[a] == hop - 1 and b in passing and b not in reached and left[seed] > 0:
                reached[b], origin[b] = hop, seed
                left[seed] -= 1
                frontier.append(b)
    return reached
