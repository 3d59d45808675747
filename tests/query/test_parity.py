"""Golden outputs of the published systems, fed the same inputs."""

from __future__ import annotations

import pytest

from kgrag.ports import Scored
from kgrag.query.chunks import pick_weighted, weighted_polling
from kgrag.query.found import Point
from kgrag.query.pagerank import PassageGraph, fact_seeds, passage_seeds, personalized_pagerank
from kgrag.query.strategies.global_ import Body, Card, batches, cut, kept_points


@pytest.mark.parametrize(
    ("counts", "picked"),
    [
        ([9, 9, 9], "a0 a1 a2 a3 a4 b0 b1 b2 c0"),
        ([1, 9, 9], "a0 b0 b1 b2 c0 b3 b4 b5 b6"),
        ([2, 2, 9], "a0 a1 b0 b1 c0 c1 c2 c3 c4"),
        ([9] * 5, "a0 a1 a2 a3 a4 b0 b1 b2 b3 c0 c1 c2 d0 d1 e0"),
        ([7], "a0 a1 a2 a3 a4"),
        ([], ""),
        ([0, 3], "b0 b1 b2"),
    ],
)
def test_weighted_polling_is_lightrags(counts: list[int], picked: str) -> None:
    """Outputs of LightRAG 1.5.7's own function at max 5, min 1 (the last two follow from its rules)."""
    assert " ".join("abcde"[item] + str(chunk) for item, chunk in weighted_polling(counts, 5)) == picked


def test_a_unit_counts_for_the_first_item_that_cites_it_and_lineage_order_does_not_matter() -> None:
    assert pick_weighted([["u2", "u1"], ["u1", "u3"]], 5) == ["u1", "u2", "u3"]
    assert pick_weighted([["u1", "u2"], ["u3", "u1"]], 5) == ["u1", "u2", "u3"]
    assert pick_weighted([["u1", "u2"], ["u3"]], 5, frozenset({"u1", "u3"})) == ["u2"]


@pytest.mark.parametrize(("edge_weight", "passage"), [(1.0, 0.155556), (2.0, 0.104762)])
def test_pagerank_is_prpacks(edge_weight: float, passage: float) -> None:
    """One fact between two phrases, each in a passage of its own, all mass on the first: igraph's prpack gives 0.155556 for a
    fact of weight 1, 0.104762 for HippoRAG's parallel edges, which weigh 2. By hand for weight 1, with p = passage, a, b =
    phrases: p = a / 4, q = b / 4, a = 1/2 + b/4 + p/2, b = a/4 + q/2, so a = 28/45 and p = 7/45; for weight 2: p = 11/105."""
    graph = PassageGraph.build("ab", "pq", [("a", "b")], [("a", "p"), ("b", "q")], edge_weight=edge_weight)
    scores = personalized_pagerank(graph, graph.reset({"a": 1.0}), max_iterations=200, tolerance=1e-12)
    assert graph.ranked_passages(scores)[0] == Scored("p", pytest.approx(passage, abs=1e-6))
    assert scores.sum() == pytest.approx(1)


def test_parallel_facts_add_up_and_self_loops_are_dropped() -> None:
    one = PassageGraph.build("ab", "p", [("a", "b")], [("a", "p")], edge_weight=2)
    two = PassageGraph.build("ab", "p", [("a", "b"), ("b", "a"), ("a", "a")], [("a", "p")], edge_weight=1)
    assert personalized_pagerank(one, one.reset({"b": 1})) == pytest.approx(personalized_pagerank(two, two.reset({"b": 1})))


def test_the_mass_of_a_node_without_edges_returns_to_the_reset() -> None:
    graph = PassageGraph.build(["a"], ["p", "q"], [], [("a", "p")])
    scores = personalized_pagerank(graph, graph.reset({"a": 1.0, "q": 1.0}), max_iterations=200, tolerance=1e-12)
    # By hand, r = (1/2, 0, 1/2) for a, p, q: q = 1/4 + q/4, a = 1/4 + p/2 + q/4, p = a/2.
    assert scores == pytest.approx([4 / 9, 2 / 9, 1 / 3])


def test_fact_seeds_are_hipporags() -> None:
    """The mean over a phrase's facts of score / citing passages; only the best link_top_k keep it."""
    facts = [(0.8, "a", "b"), (0.4, "a", "c")]
    seeds = fact_seeds(facts, {"a": 2, "b": 1, "c": 0}, 2)
    assert seeds == pytest.approx({"b": 1.0, "c": 0.5})
    assert fact_seeds(facts, {"a": 2}, 5) == pytest.approx({"a": (0.5 + 0.25) / 2})


def test_passage_seeds_are_min_max_normalised() -> None:
    assert passage_seeds([Scored("p", 3.0), Scored("q", 2.0), Scored("r", 1.0)], 0.05) == pytest.approx(
        {"p": 0.05, "q": 0.025, "r": 0.0}
    )
    assert passage_seeds([Scored("p", 3.0)], 0.05) == {"p": 0.05}


CARDS = [
    Card("root", 0, 9, ["x", "y"]),
    Card("leaf", 0, 3),
    Card("x", 1, 5, ["x1", "x2"]),
    Card("y", 1, 4),
    Card("x1", 2, 3),
    Card("x2", 2, 2),
]


@pytest.mark.parametrize(
    ("depth", "most", "chosen"),
    [
        (2, 99, ["y", "leaf", "x1", "x2"]),
        (1, 99, ["x", "y", "leaf"]),
        (0, 99, ["root", "leaf"]),
        (2, 3, ["x", "y", "leaf"]),
        (2, 2, ["root", "leaf"]),
        (9, 99, ["y", "leaf", "x1", "x2"]),
    ],
)
def test_a_cut_covers_every_entity_once_and_gives_way_to_a_shallower_one(depth: int, most: int, chosen: list[str]) -> None:
    found = cut(CARDS, depth, most)
    assert found is not None
    assert [card.id for card in found] == chosen


def test_no_cut_where_even_the_roots_are_too_many() -> None:
    assert cut(CARDS, 2, 1) is None


def test_reports_are_packed_in_order_and_points_until_the_first_that_overflows() -> None:
    reports = [Body(id=str(n), title="t", summary="word " * words) for n, words in enumerate([40, 40, 200, 10])]
    assert [[r.id for r in group] for group in batches(reports, 120)] == [["0", "1"], ["2"], ["3"]]
    points = [Point("x" * 40, 10, ()), Point("y" * 400, 50, ()), Point("z" * 40, 90, ())]
    assert [p.score for p in kept_points(points, 60)] == [90]
    assert [p.score for p in kept_points(points, 500)] == [90, 50, 10]
