from __future__ import annotations

import os
import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgrag.graph.communities import CommunitySettings, detect, follow
from kgrag.graph.network import Network, network_of
from kgrag.graph.partition import leiden, merge_small, rejoin, split_large
from kgrag.ids import community_id
from kgrag.records import Community

Edges = list[tuple[str, str, float]]
DEFAULTS = CommunitySettings()


def clique(*names: str, weight: float = 1.0) -> Edges:
    return [(a, b, weight) for a, b in combinations(names, 2)]


def communities(edges: Edges, vertices: tuple[str, ...] = (), settings: CommunitySettings = DEFAULTS) -> list[Community]:
    return detect(*network_of(vertices, edges), settings)


def finest(found: list[Community]) -> list[list[str]]:
    return sorted(c.entity_ids for c in found if not c.child_ids)


def modularity(network: Network, labels: np.ndarray) -> float:
    degree = np.bincount(network.low, network.weight, network.n) + np.bincount(network.high, network.weight, network.n)
    inside = labels[network.low] == labels[network.high]
    share = np.bincount(labels, degree) / (2 * network.total)
    return float(network.weight[inside].sum() / network.total - (share**2).sum())


def labels_of(ids: list[str], found: list[Community]) -> np.ndarray:
    place = {id: i for i, id in enumerate(ids)}
    labels = np.arange(len(ids)) + len(found)
    for number, members in enumerate(finest(found)):
        labels[[place[m] for m in members]] = number
    return np.unique(labels, return_inverse=True)[1]


def test_two_cliques_joined_by_one_edge_are_two_communities():
    found = communities([*clique("a", "b", "c", "d"), *clique("e", "f", "g", "h"), ("a", "e", 1.0)])
    assert finest(found) == [["a", "b", "c", "d"], ["e", "f", "g", "h"]]
    assert [c.id for c in found if c.level == 0] == sorted(community_id(0, m) for m in finest(found))


def test_directions_types_and_repeats_of_a_pair_add_up():
    _, network = network_of([], [("b", "a", 1.5), ("a", "b", 2.0), ("a", "b", 0.5), ("a", "a", 9.0)])
    assert (network.low.tolist(), network.high.tolist(), network.weight.tolist()) == ([0], [1], [4.0])


def test_small_components_have_no_community():
    found = communities([*clique("a", "b", "c"), ("x", "y", 1.0)], vertices=("alone",))
    assert finest(found) == [["a", "b", "c"]]
    assert communities([("x", "y", 1.0)]) == communities([]) == []


def test_a_fragment_joins_the_neighbour_it_has_most_weight_with():
    ids, network = network_of(
        [], [*clique("a", "b", "c"), *clique("d", "e", "f"), ("x", "a", 1.0), ("x", "d", 2.0), ("c", "f", 1.0)]
    )
    start = np.array([0, 0, 0, 1, 1, 1, 2])
    assert ids[-1] == "x"
    assert merge_small(network, start, 3, 20).tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert merge_small(network, start, 3, 3).tolist() == [0, 0, 0, 1, 1, 1, 1]  # no neighbour has room: the strongest all the same


def test_an_oversized_community_is_divided_and_its_parent_holds_the_pieces():
    ring = [e for i in range(12) for e in clique(*(f"{i:02}{c}" for c in "abcde"))] + [
        (f"{i:02}a", f"{(i + 1) % 12:02}b", 1.0) for i in range(12)
    ]
    found = communities(ring, settings=CommunitySettings(max_cluster_size=6))
    assert finest(found) == [[f"{i:02}{c}" for c in "abcde"] for i in range(12)]
    parents = [c for c in found if c.level == 1]
    assert parents
    for parent in parents:
        children = [c for c in found if c.id in parent.child_ids]
        assert len(children) > 1
        assert sorted(e for c in children for e in c.entity_ids) == parent.entity_ids
        assert {c.parent_id for c in children} == {parent.id}
        assert {c.depth for c in children} == {parent.depth + 1}


def test_pieces_of_a_division_join_again_as_far_as_they_fit_the_greatest_gain_first():
    """Three triangles in a row, the first two joined more strongly, and a fourth far away."""
    edges = [*clique("a", "b", "c"), *clique("d", "e", "f"), *clique("g", "h", "i"), ("c", "d", 3.0), ("f", "g", 1.0)]
    _, network = network_of([], [*edges, *clique("w", "x", "y", weight=40.0)])
    pieces = np.repeat([0, 1, 2, 3], 3)
    assert rejoin(network, pieces, 6, resolution=1.0).tolist() == np.repeat([0, 0, 1, 2], 3).tolist()
    assert rejoin(network, pieces, 9, resolution=1.0).tolist() == np.repeat([0, 0, 0, 1], 3).tolist()
    assert rejoin(network, pieces, 5, resolution=1.0).tolist() == pieces.tolist()
    assert rejoin(network, pieces, 9, resolution=50.0).tolist() == pieces.tolist()


def test_a_large_community_is_divided_until_modularity_divides_no_more():
    _, network = network_of([], [("hub", f"leaf{i}", 1.0) for i in range(9)])
    assert set(split_large(network, np.zeros(10, dtype=np.int64), 4, seed=42)) == {0}


edge_lists = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 40), st.sampled_from([0.1, 0.2, 1.0, 7.0])).map(
        lambda e: (f"n{e[0]:02}", f"n{e[1]:02}", e[2])
    ),
    max_size=120,
)
small = CommunitySettings(max_cluster_size=8)


def check(edges: Edges, found: list[Community], bounds: CommunitySettings) -> None:
    """What holds of every hierarchy: one community per node of a large component, connected, in bounds, properly nested."""
    ids, network = network_of([], edges)
    root = network.components()
    sizes = np.bincount(root, minlength=network.n)
    covered = [e for members in finest(found) for e in members]
    assert sorted(covered) == [id for id, r in zip(ids, root, strict=True) if sizes[r] >= bounds.min_community_size]
    by_id = {c.id: c for c in found}
    assert len(by_id) == len(found)
    place = {id: i for i, id in enumerate(ids)}
    for community in found:
        assert community.id == community_id(community.level, community.entity_ids)
        assert len(community.entity_ids) >= bounds.min_community_size
        assert len(set(network.induced(np.array([place[e] for e in community.entity_ids])).components())) == 1
        assert len(community.child_ids) != 1
        if community.child_ids:
            assert community.entity_ids == sorted(e for child in community.child_ids for e in by_id[child].entity_ids)
            assert all(by_id[child].level < community.level for child in community.child_ids)
        assert community.level < bounds.max_levels


@settings(deadline=None)
@given(edge_lists, st.randoms(use_true_random=False))
def test_every_node_of_a_large_component_is_in_one_connected_community_whatever_the_order(edges, random):
    found = communities(edges, settings=small)
    check(edges, found, small)
    shuffled = [(b, a, w) if random.random() < 0.5 else (a, b, w) for a, b, w in edges]
    random.shuffle(shuffled)
    assert communities(shuffled, settings=small) == found


@settings(deadline=None)
@given(edge_lists, edge_lists, st.randoms(use_true_random=False))
def test_following_a_change_keeps_the_hierarchy_sound(edges, added, random):
    before = communities(edges, settings=small)
    gone = set(random.sample(range(len(edges)), k=len(edges) // 4))
    after = [e for i, e in enumerate(edges) if i not in gone] + added
    touched = {end for i in gone for end in edges[i][:2]} | {end for e in added for end in e[:2]}
    check(after, follow(*network_of([], after), small, before, touched), small)


def test_nothing_touched_changes_nothing():
    ids, network = blocks()
    found = detect(ids, network, DEFAULTS)
    assert follow(ids, network, DEFAULTS, found, ()) == found


def test_a_change_leaves_what_it_does_not_touch():
    edges = block_edges()
    before = communities(edges)
    added = [*clique("new1", "new2", "new3"), ("new1", edges[0][0], 1.0)]
    ids, network = network_of([], edges + added)
    after = follow(ids, network, DEFAULTS, before, {"new1", "new2", "new3", edges[0][0]})
    kept = {c.id for c in before if not c.child_ids} & {c.id for c in after}
    assert len(kept) >= len(finest(before)) - 1
    cold = detect(ids, network, DEFAULTS)
    assert modularity(network, labels_of(ids, after)) >= 0.99 * modularity(network, labels_of(ids, cold))


def test_leiden_finds_at_least_the_modularity_of_the_planted_blocks():
    ids, network = blocks()
    planted = np.array([int(id[:2]) for id in ids])
    assert modularity(network, leiden(network, seed=42)) >= modularity(network, planted) - 1e-9


def test_another_process_finds_the_same_communities():
    code = "from tests.graph.test_communities import *; print([c.id for c in detect(*blocks(), DEFAULTS)])"
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed}
        )
        for seed in ("1", "2")
    ]
    assert runs[0].stdout.strip() == runs[1].stdout.strip() == str([c.id for c in detect(*blocks(), DEFAULTS)])


def block_edges() -> Edges:
    rng = np.random.default_rng(7)
    names = [f"{b:02}-{i:02}" for b in range(30) for i in range(12)]
    near = [(f"{b:02}-{i:02}", f"{b:02}-{j:02}", 1.0) for b in range(30) for i, j in rng.integers(0, 12, (30, 2))]
    far = [(names[i], names[j], 1.0) for i, j in rng.integers(0, len(names), (60, 2))]
    return near + far


def blocks() -> tuple[list[str], Network]:
    return network_of([], block_edges())


@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan")])
def test_a_pair_without_weight_joins_nothing(weight):
    assert communities([("a", "b", weight), ("b", "c", 1.0)]) == []
