from __future__ import annotations

import random

from kgrag.ports import Edge, Stores, Vertex
from kgrag.records import Community


def vertex(key: str, *units: str, rank: int = 0) -> Vertex:
    return Vertex(key, key.upper(), "thing", rank, list(units))


def edge(key: str, source: str, target: str, weight: float = 1.0) -> Edge:
    return Edge(key, source, target, weight, [f"u-{key}"])


def star(stores: Stores) -> None:
    """a is joined with b..f by e1..e5 (e3 and e5 point to a), b with c by e6."""
    stores.graph.upsert(
        [vertex(k) for k in "abcdef"],
        [
            edge("e1", "a", "b"),
            edge("e2", "a", "c"),
            edge("e3", "d", "a"),
            edge("e4", "a", "e"),
            edge("e5", "f", "a"),
            edge("e6", "b", "c"),
        ],
    )


def ids(edges: list[Edge]) -> list[str]:
    return [e.id for e in edges]


class GraphStoreContract:
    """Needs ``stores``."""

    def test_vertices_and_edges_come_back_equal(self, stores: Stores) -> None:
        given = Vertex("a", '王 "x"', "person", 3, ["u1", "u2"])
        joined = Edge("e", "a", "b", 0.1 + 0.2, ["u1"])
        stores.graph.upsert([given, vertex("b")], [joined])
        assert stores.graph.vertices(["a", "none"]) == {"a": given}
        assert stores.graph.incident(["a"]) == [joined]
        assert stores.graph.counts() == (2, 1)

    def test_incident_returns_each_edge_once_in_order(self, stores: Stores) -> None:
        star(stores)
        assert ids(stores.graph.incident(["a", "b", "a"])) == ["e1", "e2", "e4", "e6", "e3", "e5"]
        assert ids(stores.graph.incident(["d"])) == ["e3"]
        assert stores.graph.incident(["none"]) == []
        assert stores.graph.incident([]) == []

    def test_a_cap_keeps_each_vertex_s_edges_of_smallest_id(self, stores: Stores) -> None:
        star(stores)
        assert ids(stores.graph.incident(["a"], cap=2)) == ["e1", "e2"]
        assert ids(stores.graph.incident(["a", "f"], cap=1)) == ["e1", "e5"]
        assert ids(stores.graph.among(list("abcdef"), cap=1)) == ["e1", "e2", "e4", "e3", "e5"]

    def test_among_needs_both_ends_and_caps_what_is_inside(self, stores: Stores) -> None:
        star(stores)
        assert ids(stores.graph.among(["a", "b", "c"])) == ["e1", "e2", "e6"]
        assert ids(stores.graph.among(["a", "e", "f"], cap=1)) == ["e4", "e5"]
        assert stores.graph.among(["a"]) == []

    def test_parallel_edges_and_loops_are_edges_of_their_own(self, stores: Stores) -> None:
        stores.graph.upsert(
            [vertex("a"), vertex("b")], [edge("e1", "a", "b"), edge("e2", "b", "a"), edge("e3", "a", "b"), edge("e4", "a", "a")]
        )
        assert ids(stores.graph.incident(["a"])) == ["e4", "e1", "e3", "e2"]
        assert ids(stores.graph.among(["a", "b"])) == ["e4", "e1", "e3", "e2"]
        assert stores.graph.expand({"a": 5}, hops=1, cap=10) == {"a": 0, "b": 1}

    def test_expand_by_hops_budget_and_cap(self, stores: Stores) -> None:
        chain = "abcde"
        stores.graph.upsert([vertex(k) for k in chain], [edge(f"e{i}", chain[i], chain[i + 1]) for i in range(4)])
        assert stores.graph.expand({"a": 9}, hops=2, cap=9) == {"a": 0, "b": 1, "c": 2}
        assert stores.graph.expand({"a": 1}, hops=3, cap=9) == {"a": 0, "b": 1}
        assert stores.graph.expand({"a": 0}, hops=3, cap=9) == {"a": 0}
        assert stores.graph.expand({"c": 9}, hops=1, cap=1) == {"c": 0, "b": 1}
        assert stores.graph.expand({"a": 9, "e": 9, "none": 9}, hops=1, cap=9) == {"a": 0, "b": 1, "d": 1, "e": 0}
        assert stores.graph.expand({"a": 9, "c": 9}, hops=2, cap=9) == {"a": 0, "b": 1, "c": 0, "d": 1, "e": 2}
        assert stores.graph.expand({}, hops=2, cap=9) == {}

    def test_a_changed_edge_moves_and_an_unchanged_one_stays(self, stores: Stores) -> None:
        star(stores)
        stores.graph.upsert([], [edge("e1", "c", "d", 2.5), edge("e2", "a", "c")])
        assert ids(stores.graph.incident(["b"])) == ["e6"]
        assert ids(stores.graph.incident(["d"])) == ["e1", "e3"]
        assert stores.graph.incident(["d"])[0].weight == 2.5
        assert stores.graph.counts() == (6, 6)

    def test_delete_leaves_nothing(self, stores: Stores) -> None:
        star(stores)
        stores.graph.upsert([vertex("a", "u1")], [])
        stores.graph.delete(["a", "none"], ["e1", "e2", "e3", "e4", "e5", "none"])
        assert stores.graph.incident(["a"]) == []
        assert stores.graph.citing(["u1"]) == {}
        assert stores.graph.counts() == (5, 1)
        assert ids(stores.graph.incident(list("abcdef"))) == ["e6"]
        assert stores.graph.expand({"a": 3}, hops=1, cap=3) == {}

    def test_citing_follows_lineage(self, stores: Stores) -> None:
        stores.graph.upsert([vertex("b", "u1", "u2"), vertex("a", "u1")], [])
        assert stores.graph.citing(["u1", "u2", "u3"]) == {"u1": ["a", "b"], "u2": ["b"]}
        stores.graph.upsert([vertex("b", "u2", "u3")], [])
        assert stores.graph.citing(["u1", "u2", "u3"]) == {"u1": ["a"], "u2": ["b"], "u3": ["b"]}

    def test_scans_stream_in_id_order(self, stores: Stores) -> None:
        star(stores)
        assert [v.id for v in stores.graph.scan_vertices(after="b", limit=2)] == ["c", "d"]
        assert ids(stores.graph.scan_edges(after="e2", limit=3)) == ["e3", "e4", "e5"]
        assert len(stores.graph.scan_edges()) == 6

    def test_walks_equal_the_definition_on_a_random_graph(self, stores: Stores) -> None:
        chooser = random.Random(3)
        names = [f"v{i:02}" for i in range(30)]
        edges = [edge(f"e{i:03}", chooser.choice(names), chooser.choice(names[:10])) for i in range(150)]
        stores.graph.upsert([vertex(n) for n in names], edges)

        def first(key: str, cap: int | None, inside: set[str] | None = None) -> list[Edge]:
            at = [
                e for e in edges if key in (e.source_id, e.target_id) and (inside is None or {e.source_id, e.target_id} <= inside)
            ]
            return sorted(at, key=lambda e: e.id)[:cap]

        for cap in (None, 1, 4):
            for size in (1, 5, 20):
                some = chooser.sample(names, size)
                for found, inside in ((stores.graph.incident(some, cap=cap), None), (stores.graph.among(some, cap=cap), set(some))):
                    expected = {e.id: e for key in some for e in first(key, cap, inside)}.values()
                    assert found == sorted(expected, key=lambda e: (e.source_id, e.target_id, e.id))

    # ------------------------------------------------------------ communities

    def test_communities_and_their_members(self, stores: Stores) -> None:
        fine = Community(id="c1", level=0, parent_id="c3", entity_ids=["a", "b"])
        other = Community(id="c2", level=0, parent_id="c3", entity_ids=["c"])
        coarse = Community(id="c3", level=1, child_ids=["c1", "c2"], entity_ids=["a", "b", "c"])
        stores.graph.replace_communities([coarse, other, fine], [])
        assert stores.graph.communities() == [fine, other, coarse]
        assert stores.graph.communities(["c3", "none"]) == [coarse]
        assert stores.graph.communities([]) == []
        assert stores.graph.communities_of(["c", "a", "z"]) == {"a": ["c1", "c3"], "c": ["c2", "c3"]}

    def test_replaced_and_gone_communities_leave_no_members(self, stores: Stores) -> None:
        stores.graph.replace_communities(
            [Community(id="c1", level=0, entity_ids=["a", "b"]), Community(id="c2", level=0, entity_ids=["c"])], []
        )
        stores.graph.replace_communities([Community(id="c1", level=1, entity_ids=["b"])], ["c2", "none"])
        assert [c.id for c in stores.graph.communities()] == ["c1"]
        assert stores.graph.communities_of(["a", "b", "c"]) == {"b": ["c1"]}
