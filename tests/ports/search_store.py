from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgrag.errors import KgragError, StoreError
from kgrag.filters import All, Exists, Filter, Not, Range, Term, matches
from kgrag.ids import digest
from kgrag.ports import COLLECTIONS, Row, Scored, Stores, Vector
from kgrag.records import Metadata
from tests.ports.reference import bm25, cosines, same_ranking

DIMENSION = 8
SCORE_TOLERANCE = 2e-3
"""Of a BM25 score: implementations round document lengths and sums."""


def unit(*parts: float) -> Vector:
    vector = np.zeros(DIMENSION, np.float32)
    vector[: len(parts)] = parts
    return vector


def row(key: str, tokens: str = "", vector: Vector | None = None, **metadata: object) -> Row:
    return Row(
        key,
        f'{{"id":"{key}"}}'.encode(),
        tokens,
        metadata or None,
        vector,
        digest(tokens, vector.tobytes()) if vector is not None else "",  # type: ignore[arg-type]
    )


words = st.lists(st.sampled_from(["ant", "bee", "cat", "dog", "elk", "fox", "字", "猫好"]), max_size=12).map(" ".join)
scalars = st.one_of(
    st.sampled_from(["a", "b", "", "1", "true", "2020-01-01"]),
    st.integers(-3, 3),
    st.sampled_from([0.5, 1.0, -2.5, 1e300]),
    st.booleans(),
)
metadatas = st.dictionaries(
    st.sampled_from(["x", "y", "document_id"]), st.one_of(scalars, st.lists(scalars, max_size=3)), max_size=3
)
bounds = st.one_of(st.sampled_from(["a", "b", "2020"]), st.integers(-3, 3), st.sampled_from([0.5, -2.5]))
leaves = st.one_of(
    st.builds(Term, st.sampled_from(["x", "y", "z"]), st.lists(scalars, min_size=1, max_size=3).map(tuple)),
    st.builds(Exists, st.sampled_from(["x", "y", "z"])),
    st.builds(Range, st.sampled_from(["x", "y"]), gte=bounds),
    st.builds(Range, st.sampled_from(["x", "y"]), gt=bounds, lte=bounds),
    st.builds(Range, st.sampled_from(["x", "y"]), lt=bounds),
)
filters = st.recursive(
    leaves, lambda inner: st.one_of(st.builds(Not, inner), st.builds(All, st.lists(inner, max_size=3).map(tuple))), max_leaves=4
)
vectors = st.one_of(
    st.none(),
    st.lists(st.integers(-3, 3), min_size=DIMENSION, max_size=DIMENSION).map(lambda v: np.array(v, np.float32)),
)
slow_fixtures = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


class SearchStoreContract:
    """Needs ``stores`` and, for the laws, ``fresh_stores``: a function that gives a new empty Stores at each call."""

    # ------------------------------------------------------------ rows

    def test_get_reads_its_own_writes_before_a_refresh(self, stores: Stores) -> None:
        stores.search.upsert("entities", [row("a"), row("b")])
        assert stores.search.get("entities", ["b", "a", "missing"]) == {"a": b'{"id":"a"}', "b": b'{"id":"b"}'}

    def test_an_upsert_replaces_the_row(self, stores: Stores) -> None:
        stores.search.upsert("entities", [row("a", "ant")])
        stores.search.upsert("entities", [Row("a", b"[2]", "bee")])
        stores.search.refresh()
        assert stores.search.get("entities", ["a"]) == {"a": b"[2]"}
        assert stores.search.count("entities") == 1
        assert stores.search.lexical("entities", ["ant"], 5) == []
        assert [s.id for s in stores.search.lexical("entities", ["bee"], 5)] == ["a"]

    def test_the_last_of_equal_ids_in_one_upsert_wins(self, stores: Stores) -> None:
        stores.search.upsert("entities", [Row("a", b"1", "ant"), Row("a", b"2", "bee")])
        stores.search.refresh()
        assert stores.search.get("entities", ["a"]) == {"a": b"2"}
        assert [s.id for s in stores.search.lexical("entities", ["ant", "bee"], 5)] == ["a"]

    def test_collections_are_apart(self, stores: Stores) -> None:
        for collection in COLLECTIONS:
            stores.search.upsert(collection, [Row("a", collection.encode(), "ant")])
        stores.search.delete("claims", ["a"])
        stores.search.refresh()
        for collection in COLLECTIONS:
            held = {} if collection == "claims" else {"a": collection.encode()}
            assert stores.search.get(collection, ["a"]) == held
            assert len(stores.search.lexical(collection, ["ant"], 5)) == len(held)

    def test_an_unknown_collection_is_refused(self, stores: Stores) -> None:
        with pytest.raises(KgragError, match="collection"):
            stores.search.count("entities; DROP TABLE entities")  # type: ignore[arg-type]

    def test_scan_streams_in_id_order(self, stores: Stores) -> None:
        keys = sorted(digest(str(i)) for i in range(25))
        stores.search.upsert("text_units", [row(key) for key in reversed(keys)])
        found: list[str] = []
        while page := stores.search.scan("text_units", after=found[-1] if found else "", limit=10):
            found += [key for key, _ in page]
        assert found == keys

    def test_a_row_keeps_its_vector_under_an_unchanged_digest(self, stores: Stores) -> None:
        stores.search.upsert("entities", [Row("a", b"1", "ant", None, unit(1), "d1")])
        stores.search.upsert("entities", [Row("a", b"2", "bee", {"x": 1}, None, "d1")])
        stores.search.refresh()
        assert stores.search.vector_digests("entities", ["a", "b"]) == {"a": "d1"}
        np.testing.assert_array_equal(stores.search.vectors("entities", ["a"])["a"], unit(1))
        assert stores.search.nearest("entities", unit(2), 5) == [Scored("a", 1.0)]

    def test_a_digest_without_a_vector_that_is_not_held_is_refused(self, stores: Stores) -> None:
        stores.search.upsert("entities", [Row("a", b"1", "ant", None, unit(1), "d1")])
        with pytest.raises(StoreError, match="vector"):
            stores.search.upsert("entities", [Row("a", b"2", "ant", None, None, "d2")])
        assert stores.search.get("entities", ["a"]) == {"a": b"1"}

    def test_a_row_without_vector_and_digest_loses_its_vector(self, stores: Stores) -> None:
        stores.search.upsert("entities", [Row("a", b"1", "ant", None, unit(1), "d1")])
        stores.search.upsert("entities", [Row("a", b"1", "ant")])
        stores.search.refresh()
        assert stores.search.vectors("entities", ["a"]) == {}
        assert stores.search.nearest("entities", unit(1), 5) == []

    def test_vectors_come_back_as_they_were_given(self, stores: Stores) -> None:
        given = np.array([0.1, -2, 3e-5, 7, 0, 0, 0, 1], np.float32)
        stores.search.upsert("reports", [row("a", vector=given)])
        assert stores.search.vectors("reports", ["a"])["a"].tobytes() == given.tobytes()

    def test_ids_may_be_of_any_length_and_script(self, stores: Stores) -> None:
        keys = ["x" * 32, "x" * 33, "x" * 500, "猫", "é", "A b?%"]
        stores.search.upsert("entities", [row(key, "ant", unit(1)) for key in keys])
        stores.search.refresh()
        assert [s.id for s in stores.search.lexical("entities", ["ant"], 10)] == sorted(keys)
        assert [s.id for s in stores.search.nearest("entities", unit(1), 10)] == sorted(keys)
        assert [s.id for s in stores.search.nearest("entities", unit(1), 10, ids=keys[2:4])] == sorted(keys[2:4])

    # ------------------------------------------------------------ visibility

    def test_rows_become_searchable_at_refresh(self, stores: Stores) -> None:
        stores.search.upsert("entities", [row("a", "ant", unit(1))])
        stores.search.refresh()
        stores.search.upsert("entities", [row("b", "ant", unit(1))])
        stores.search.delete("entities", ["a"])
        assert [s.id for s in stores.search.lexical("entities", ["ant"], 5)] == ["a"]
        assert [s.id for s in stores.search.nearest("entities", unit(1), 5)] == ["a"]
        stores.search.refresh()
        assert [s.id for s in stores.search.lexical("entities", ["ant"], 5)] == ["b"]
        assert [s.id for s in stores.search.nearest("entities", unit(1), 5)] == ["b"]

    def test_deletes_leave_nothing(self, stores: Stores) -> None:
        stores.search.upsert("entities", [row(str(i), "ant", unit(1, i)) for i in range(20)])
        stores.search.refresh()
        stores.search.delete("entities", [str(i) for i in range(20)] + ["missing"])
        stores.search.refresh()
        assert stores.search.count("entities") == 0
        assert stores.search.scan("entities") == []
        assert stores.search.lexical("entities", ["ant"], 5) == []
        assert stores.search.nearest("entities", unit(1), 5) == []

    # ------------------------------------------------------------ nothing to find

    def test_an_empty_store_finds_nothing(self, stores: Stores) -> None:
        for _ in range(2):
            assert stores.search.lexical("entities", ["ant"], 5) == []
            assert stores.search.nearest("entities", unit(1), 5) == []
            stores.search.refresh()

    def test_unknown_tokens_and_no_tokens_find_nothing(self, stores: Stores) -> None:
        stores.search.upsert("entities", [row("a", "ant")])
        stores.search.refresh()
        assert stores.search.lexical("entities", ["bee", "ant bee"], 5) == []
        assert stores.search.lexical("entities", [], 5) == []
        assert stores.search.lexical("entities", ["ant"], 0) == []
        assert stores.search.lexical("entities", ["ant"], 5, ids=[]) == []

    def test_zero_vectors_have_no_neighbours(self, stores: Stores) -> None:
        stores.search.upsert("entities", [row("a", vector=unit()), row("b", vector=unit(-1))])
        stores.search.refresh()
        assert stores.search.nearest("entities", unit(1), 5) == [Scored("b", -1.0)]
        assert stores.search.nearest("entities", unit(), 5) == []
        assert stores.search.nearest("entities", unit(1), 5, ids=["a"]) == []

    def test_a_wrong_dimension_is_named(self, stores: Stores) -> None:
        stores.search.upsert("entities", [row("a", vector=unit(1))])
        stores.search.refresh()
        with pytest.raises(KgragError, match="dimension"):
            stores.search.nearest("entities", np.ones(DIMENSION + 1, np.float32), 5)
        with pytest.raises(KgragError, match="dimension"):
            stores.search.upsert("entities", [row("b", vector=np.ones(DIMENSION + 1, np.float32))])
        assert stores.search.count("entities") == 1

    def test_vectors_that_are_not_finite_are_refused(self, stores: Stores) -> None:
        with pytest.raises(StoreError, match="NaN"):
            stores.search.upsert("entities", [row("a", vector=unit(float("nan")))])
        assert stores.search.count("entities") == 0

    # ------------------------------------------------------------ ranking

    def test_bm25_by_hand(self, stores: Stores) -> None:
        stores.search.upsert("entities", [row("a", "ant bee"), row("b", "bee bee bee cat"), row("c", "cat")])
        stores.search.refresh()
        # idf(bee) = ln(1 + 1.5/2.5) = 0.470, idf(ant) = ln(1 + 2.5/1.5) = 0.981, mean length 7/3
        found = stores.search.lexical("entities", ["ant", "bee"], 5)
        assert [s.id for s in found] == ["a", "b"]
        assert found[0].score == pytest.approx((0.4700 + 0.9808) / (1 + 1.2 * (0.25 + 0.75 * 2 * 3 / 7)), abs=1e-3)
        assert found[1].score == pytest.approx(0.4700 * 3 / (3 + 1.2 * (0.25 + 0.75 * 4 * 3 / 7)), abs=1e-3)

    def test_a_token_asked_twice_counts_twice(self, stores: Stores) -> None:
        stores.search.upsert("entities", [row("a", "ant"), row("b", "bee")])
        stores.search.refresh()
        once = stores.search.lexical("entities", ["ant"], 5)[0].score
        assert [s.id for s in stores.search.lexical("entities", ["bee", "ant", "bee"], 5)] == ["b", "a"]
        assert stores.search.lexical("entities", ["ant", "ant"], 5)[0].score == pytest.approx(2 * once, abs=1e-3)

    def test_rows_without_tokens_do_not_weigh_in_the_statistics(self, stores: Stores) -> None:
        rows = {r.id: r for r in [row("a", "ant bee"), row("b", "ant"), *(row(f"e{i}", vector=unit(1)) for i in range(10))]}
        stores.search.upsert("entities", rows.values())
        stores.search.refresh()
        same_ranking(stores.search.lexical("entities", ["bee"], 5), bm25(rows, ["bee"]), 5, tolerance=SCORE_TOLERANCE)

    def test_ties_are_ordered_by_id_also_at_the_cut(self, stores: Stores) -> None:
        keys = [digest(str(i)) for i in range(60)]
        stores.search.upsert("entities", [row(key, "ant bee", unit(1, 2)) for key in keys])
        stores.search.upsert("entities", [row(f"{key}x", "ant cat dog elk", unit(1, 4)) for key in keys])
        stores.search.refresh()
        for top_k in (1, 5, 59, 60):
            assert [s.id for s in stores.search.lexical("entities", ["ant"], top_k)] == sorted(keys)[:top_k]
            assert [s.id for s in stores.search.nearest("entities", unit(1, 2), top_k)] == sorted(keys)[:top_k]

    @slow_fixtures
    @given(
        data=st.dictionaries(st.integers(0, 30).map(lambda i: digest(str(i))), st.tuples(words, vectors, metadatas), max_size=25),
        gone=st.lists(st.integers(0, 30), max_size=6),
        tokens=words,
        filter=st.one_of(st.none(), filters),
        top_k=st.integers(1, 8),
        some=st.one_of(st.none(), st.lists(st.integers(0, 40), max_size=10)),
    )
    def test_rankings_equal_the_definition(
        self,
        fresh_stores: Callable[[], Stores],
        data: dict[str, tuple[str, Vector | None, Metadata]],
        gone: list[int],
        tokens: str,
        filter: Filter | None,
        top_k: int,
        some: list[int] | None,
    ) -> None:
        stores = fresh_stores()
        rows = {key: Row(key, b"{}", text, meta or None, vector, "") for key, (text, vector, meta) in data.items()}
        stores.search.upsert("claims", rows.values())
        for i in gone:
            rows.pop(digest(str(i)), None)
        stores.search.delete("claims", [digest(str(i)) for i in gone])
        stores.search.refresh()
        ids = None if some is None else [digest(str(i)) for i in some]
        query = np.arange(1, DIMENSION + 1, dtype=np.float32)
        found = stores.search.nearest("claims", query, top_k, filter=filter, ids=ids)
        same_ranking(found, cosines(rows, query, filter=filter, ids=ids), top_k, tolerance=1e-5)
        found = stores.search.lexical("claims", tokens.split(), top_k, filter=filter, ids=ids)
        same_ranking(found, bm25(rows, tokens.split(), filter=filter, ids=ids), top_k, tolerance=SCORE_TOLERANCE)
        if filter is not None:
            keys = [*rows, "missing"]
            assert stores.search.passing("claims", keys, filter) == {k for k in rows if matches(filter, rows[k].metadata or {})}
        stores.close()

    # ------------------------------------------------------------ filters

    def test_filters_hold_inside_both_legs(self, stores: Stores) -> None:
        # The best rows of each leg fail the filter, so a filter applied to a cut list would find too few.
        rows = [row(f"{i:03}", "ant " * (20 - i % 20), unit(1, i / 50), year=1990 + i % 20, tags=["a", "b"]) for i in range(200)]
        stores.search.upsert("text_units", rows)
        stores.search.refresh()
        held = {r.id: r for r in rows}
        for filter in (
            Term("year", (2009,)),
            Range("year", gte=2000, lt=2005),
            Not(Term("year", (1990, 1991))),
            All((Term("tags", ("b",)), Range("year", gt=2007))),
            Not(Exists("year")),
        ):
            found = stores.search.lexical("text_units", ["ant"], 10, filter=filter)
            same_ranking(found, bm25(held, ["ant"], filter=filter), 10, tolerance=SCORE_TOLERANCE)
            found = stores.search.nearest("text_units", unit(1), 10, filter=filter)
            same_ranking(found, cosines(held, unit(1), filter=filter), 10, tolerance=1e-5)

    def test_true_one_and_the_text_one_are_three_values(self, stores: Stores) -> None:
        stores.search.upsert(
            "entities", [row("b", "ant", x=True), row("n", "ant", x=1), row("f", "ant", x=1.0), row("s", "ant", x="1")]
        )
        stores.search.refresh()
        for value, expected in ((True, {"b"}), (1, {"n", "f"}), (1.0, {"n", "f"}), ("1", {"s"})):
            assert stores.search.passing("entities", ["b", "n", "f", "s"], Term("x", (value,))) == expected
            assert {s.id for s in stores.search.lexical("entities", ["ant"], 9, filter=Term("x", (value,)))} == expected

    def test_metadata_changes_alone_are_seen(self, stores: Stores) -> None:
        stores.search.upsert("entities", [Row("a", b"1", "ant", {"x": 1}, unit(1), "d")])
        stores.search.refresh()
        stores.search.upsert("entities", [Row("a", b"1", "ant", {"x": 2}, None, "d")])
        stores.search.refresh()
        for value, expected in ((1, []), (2, ["a"])):
            assert [s.id for s in stores.search.nearest("entities", unit(1), 9, filter=Term("x", (value,)))] == expected
            assert [s.id for s in stores.search.lexical("entities", ["ant"], 9, filter=Term("x", (value,)))] == expected
