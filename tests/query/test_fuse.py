from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag.ports import Scored
from kgrag.query.fuse import Fused, Leg, diversify, fuse


def leg(name: str, *pairs: tuple[str, float], weight: float = 1.0, floor: float = 0.0) -> Leg:
    return Leg(name, "text_unit", [Scored(id, score) for id, score in pairs], weight, floor)


def test_reciprocal_ranks_by_hand() -> None:
    fused = fuse([leg("a", ("x", 9), ("y", 8)), leg("b", ("y", 0.9), ("z", 0.8), weight=0.5)], method="rrf")
    total = 1 / 61 + 0.5 / 61
    assert [(f.id, f.sources) for f in fused] == [("y", ("a", "b")), ("x", ("a",)), ("z", ("b",))]
    assert [f.score for f in fused] == pytest.approx([(1 / 62 + 0.5 / 61) / total, (1 / 61) / total, (0.5 / 62) / total])


def test_weighted_scores_by_hand() -> None:
    fused = fuse([leg("a", ("x", 8), ("y", 4)), leg("b", ("y", 0.9), ("z", 0.8), weight=2, floor=0.8)])
    assert [(f.id, f.score) for f in fused] == [("y", pytest.approx((0.5 + 2) / 3)), ("x", pytest.approx(1 / 3)), ("z", 0.0)]


def test_first_everywhere_scores_one_and_a_weight_of_zero_takes_no_part() -> None:
    for method in ("rrf", "weights"):
        fused = fuse([leg("a", ("x", 3), ("y", 1)), leg("b", ("x", 7)), leg("c", ("y", 1))], method=method, weights={"c": 0})
        assert fused[0] == Fused("x", pytest.approx(1.0), ("a", "b"))
        assert fuse([leg("a", ("x", 1), weight=0)], method=method) == []


@given(st.lists(st.lists(st.sampled_from("abcdef"), unique=True), max_size=4), st.sampled_from(["rrf", "weights"]))
def test_fusion_is_the_union_in_a_total_order(rankings: list[list[str]], method: str) -> None:
    legs = [leg(str(n), *((id, 1 / (place + 1)) for place, id in enumerate(ids))) for n, ids in enumerate(rankings)]
    fused = fuse(legs, method=method)
    assert {f.id for f in fused} == {id for ids in rankings for id in ids}
    assert fused == sorted(fused, key=lambda f: (-f.score, f.id))
    assert all(0 < f.score <= 1 + 1e-9 for f in fused)
    shuffled = fuse(legs[::-1], method=method)
    assert [f.id for f in shuffled] == [f.id for f in fused] or method == "weights" or len(legs) > 2


def test_diversity_prefers_what_is_new_and_is_off_without_vectors() -> None:
    ranked = [Fused("a", 1.0, ()), Fused("b", 0.9, ()), Fused("c", 0.5, ())]
    vectors = {"a": np.array([1, 0], np.float32), "b": np.array([1, 0], np.float32), "c": np.array([0, 1], np.float32)}
    assert [f.id for f in diversify(ranked, vectors, 2, 0.5)] == ["a", "c"]
    assert [f.id for f in diversify(ranked, vectors, 2, 1.0)] == ["a", "b"]
    assert [f.id for f in diversify(ranked, {"a": vectors["a"]}, 2, 0.5)] == ["a", "b"]
