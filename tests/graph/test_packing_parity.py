"""Packing against MS GraphRAG's ``sort_context`` (3.1.2), run side by side where it is installed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgrag.graph.packing import Costs, ReportSettings, pack
from kgrag.records import Entity, Relationship

ROOMY = ReportSettings(max_report_context_tokens=1_000_000)
pairs = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda p: p[0] != p[1]), min_size=1, max_size=25, unique=True
)


def graph(edges: list[tuple[int, int]]) -> tuple[list[Entity], list[Relationship]]:
    """Nodes of a list of edges, best connected first, and the edges in packing order: degree, then weight (one), then id."""
    degree: dict[int, int] = {}
    for edge in edges:
        for end in edge:
            degree[end] = degree.get(end, 0) + 1
    entities = [Entity(id=f"n{n}", name=f"N{n}", description=f"about {n}", rank=rank) for n, rank in degree.items()]
    relationships = [
        Relationship(id=f"{i:03}", source_id=f"n{s}", target_id=f"n{t}", description=f"edge {i}", weight=1)
        for i, (s, t) in enumerate(edges)
    ]
    rank = {e.id: e.rank for e in entities}
    entities.sort(key=lambda e: (-e.rank, e.id))
    return entities, sorted(relationships, key=lambda r: (-(rank[r.source_id] + rank[r.target_id]), -r.weight, r.id))


def published(entities: list[Entity], relationships: list[Relationship], budget: int) -> list[int]:
    """Ids of the edges the original keeps; a context costs a token per line of its tables."""
    original = pytest.importorskip("graphrag.index.operations.summarize_communities.graph_context.sort_context")

    class Lines:
        def num_tokens(self, text: str) -> int:
            return len(text.splitlines())

    rank = {e.id: e.rank for e in entities}
    details: dict[str, list[dict[str, Any]]] = {e.id: [] for e in entities}
    for r in relationships:
        row = {"human_readable_id": int(r.id), "source": r.source_id, "target": r.target_id, "description": r.description}
        details[r.source_id].append({**row, "combined_degree": rank[r.source_id] + rank[r.target_id]})
    context = [
        {
            "title": e.id,
            "node_details": {"human_readable_id": i, "title": e.id, "description": e.description, "degree": e.rank},
            "edge_details": details[e.id],
        }
        for i, e in enumerate(entities)
    ]
    text = original.sort_context(context, Lines(), max_context_tokens=budget)
    table = text.split("-----Relationships-----\n")[1].splitlines()
    place = table[0].split(",").index("human_readable_id")
    return [int(line.split(",")[place]) for line in table[1:]]


def packed(entities: list[Entity], relationships: list[Relationship], settings: ReportSettings = ROOMY) -> list[int]:
    kept, _ = pack("C", entities, relationships, {}, settings, Costs())
    return [int(r.description.split()[1]) for r in kept.relationships]


@settings(deadline=None)
@given(pairs)
def test_with_room_for_all_the_edges_come_in_the_published_order(edges):
    entities, relationships = graph(edges)
    assert packed(entities, relationships) == published(entities, relationships, 1_000_000)


def test_hand_checked_order_on_a_small_graph():
    """Degrees: 0 has 3, 1 and 2 have 2, 3 has 1. Combined: 0-1 and 0-2 have 5, 1-2 and 0-3 have 4; ids break ties."""
    entities, relationships = graph([(1, 2), (0, 3), (0, 2), (1, 0)])
    assert packed(entities, relationships) == [2, 3, 0, 1]


def test_what_the_original_keeps_before_it_stops_is_kept_here_and_more():
    """A star whose second edge is too long: the original stops there, this goes on with the third."""
    entities, relationships = graph([(0, 1), (0, 2), (0, 3)])
    long = Relationship(id="001", source_id="n0", target_id="n2", description="edge 1 " + "word " * 500, weight=1)
    relationships = [relationships[0], long, relationships[2]]
    assert packed(entities, relationships, ReportSettings(max_report_context_tokens=200)) == [0, 2]
