"""The search files follow the rows: appended to, taken from, written anew, and erased."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kgrag.backends.local import knn
from kgrag.backends.local import rows as rows_module
from kgrag.backends.local.stores import LocalStores, open_stores
from kgrag.filters import Exists, Term
from kgrag.ids import digest
from kgrag.ports import Edge, Row, Vertex
from kgrag.records import Community, DocumentStatus, Statement, UnitRecord
from tests.ports.reference import bm25, cosines, same_ranking

MARKER = "xylophonequartz"


def state(stores: LocalStores) -> dict[str, dict[str, dict[str, int]]]:
    found: dict[str, dict[str, dict[str, int]]] = json.loads((stores.folder / "search.json").read_bytes())["collections"]
    return found


def written(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(p): (p.stat().st_mtime_ns, p.stat().st_ino) for p in folder.rglob("*") if p.is_file() and not p.name.endswith(".lock")
    }


def test_a_refresh_without_changes_writes_nothing(stores: LocalStores) -> None:
    stores.search.upsert("entities", [Row("a", b"{}", "ant", {"x": 1}, np.ones(4, np.float32))])
    stores.search.refresh()
    before = written(stores.folder)
    stores.search.refresh()
    assert written(stores.folder) == before


def test_a_change_of_the_body_alone_leaves_the_search_files(stores: LocalStores) -> None:
    stores.search.upsert("entities", [Row("a", b"1", "ant", {"x": 1}, np.ones(4, np.float32), "d")])
    stores.search.refresh()
    before = state(stores)
    stores.search.upsert("entities", [Row("a", b"2", "ant", {"x": 1}, None, "d")])
    stores.search.refresh()
    assert state(stores) == before
    assert stores.search.get("entities", ["a"]) == {"a": b"2"}


def test_files_are_written_anew_when_much_of_them_is_gone(stores: LocalStores) -> None:
    keys = [digest(str(i)) for i in range(3000)]
    rows = {
        k: Row(k, b"{}", f"ant w{i % 7} w{i % 11}", None, np.array([1, i % 13, i % 5, 1], np.float32)) for i, k in enumerate(keys)
    }
    stores.search.upsert("claims", rows.values())
    stores.search.refresh()
    folder = state(stores)["claims"]["columns"]["folder"]
    for key in keys[:1500]:
        del rows[key]
    stores.search.delete("claims", keys[:1500])
    stores.search.refresh()
    after = state(stores)["claims"]["columns"]
    assert after["folder"] != folder
    assert after["rows"] == after["live"] == 1500
    assert [p.name for p in (stores.folder / "vectors").iterdir()] == [after["folder"]]
    same_ranking(stores.search.lexical("claims", ["w1", "w2"], 30), bm25(rows, ["w1", "w2"]), 30, tolerance=2e-3)
    query = np.array([1, 2, 3, 4], np.float32)
    same_ranking(stores.search.nearest("claims", query, 30), cosines(rows, query), 30, tolerance=1e-5)


def test_a_history_of_changes_ends_where_a_single_write_does(stores: LocalStores, fresh_stores: object) -> None:
    chooser = np.random.default_rng(5)
    rows: dict[str, Row] = {}
    for _ in range(6):
        changed = {
            f"k{chooser.integers(80)}": (int(chooser.integers(5)), chooser.standard_normal(6).astype(np.float32)) for _ in range(25)
        }
        for key, (n, vector) in changed.items():
            rows[key] = Row(key, str(n).encode(), f"ant w{n} bee", {"n": n}, vector, digest(vector.tobytes()))
        stores.search.upsert("entities", [rows[key] for key in changed])
        gone = [f"k{chooser.integers(80)}" for _ in range(6)]
        for key in gone:
            rows.pop(key, None)
        stores.search.delete("entities", gone)
        stores.search.refresh()
        query = chooser.standard_normal(6).astype(np.float32)
        same_ranking(stores.search.nearest("entities", query, 100), cosines(rows, query), 100, tolerance=1e-5)
        assert {s.id for s in stores.search.lexical("entities", ["ant"], 100)} == set(rows)
    stores.search.rebuild()
    same_ranking(stores.search.lexical("entities", ["w1", "ant"], 100), bm25(rows, ["w1", "ant"]), 100, tolerance=2e-3)


def test_metadata_that_no_row_has_any_more_does_not_pile_up(stores: LocalStores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "_UNUSED_LEAST", 10)
    for turn in range(6):
        stores.search.upsert("entities", [Row(str(i), b"{}", "ant", {"turn": turn, "i": i}) for i in range(20)])
        stores.search.refresh()
        assert len(stores.search.mask(Exists("turn"))) > 20 * turn  # numbers are not used again
        assert np.count_nonzero(stores.search.mask(Exists("turn"))) < 60
        assert len(stores.search.lexical("entities", ["ant"], 50, filter=Term("turn", (turn,)))) == 20


def test_vectors_that_come_later_are_searched(stores: LocalStores) -> None:
    stores.search.upsert("relationships", [Row("a", b"{}", "ant"), Row("b", b"{}", "bee")])
    stores.search.refresh()
    assert stores.search.nearest("relationships", np.ones(4, np.float32), 5) == []
    stores.search.upsert("relationships", [Row("a", b"{}", "ant", None, np.ones(4, np.float32), "d")])
    stores.search.refresh()
    assert [s.id for s in stores.search.nearest("relationships", np.ones(4, np.float32), 5)] == ["a"]


def test_an_index_emptied_of_vectors_takes_another_dimension(stores: LocalStores) -> None:
    stores.search.upsert("entities", [Row("a", b"{}", "ant", None, np.ones(4, np.float32), "d")])
    stores.search.refresh()
    stores.search.delete("entities", ["a"])
    stores.search.upsert("entities", [Row("b", b"{}", "ant", None, np.ones(6, np.float32), "e")])
    stores.search.refresh()
    assert [s.id for s in stores.search.nearest("entities", np.ones(6, np.float32), 5)] == ["b"]


def test_after_compact_no_file_holds_a_byte_of_what_was_deleted(tmp_path: Path) -> None:
    stores = open_stores(tmp_path, "n", mode="write", create=True)
    vector = np.frombuffer(MARKER.encode() + b"!", np.float32)
    for key, text in (("kept", "ant"), (MARKER, MARKER)):
        stores.search.upsert(
            "entities", [Row(key, text.encode(), f"{text} bee", {"path": text}, vector if text == MARKER else np.ones(4))]
        )  # type: ignore[arg-type]
        stores.records.put(
            [UnitRecord(unit_id=key, document_id=text)],
            [Statement(kind="entity", group=key, unit_id=key, document_id=text, name=text)],
        )
        stores.graph.upsert([Vertex(key, text, "", 0, [key])], [Edge(f"e-{key}", key, key, 1.0, [key])])
        stores.graph.replace_communities([Community(id=key, level=0, entity_ids=[key])], [])
        stores.status.put([DocumentStatus(id=key, scope="s", path=text)])
        stores.status.put_files("s", {text: text})
        stores.answers.put_many({key: text.encode()})
        stores.search.refresh()
    stores.search.delete("entities", [MARKER])
    stores.records.delete([MARKER])
    stores.graph.delete([MARKER], [f"e-{MARKER}"])
    stores.graph.replace_communities([], [MARKER])
    stores.status.delete([MARKER])
    stores.status.put_files("s", {}, gone=[MARKER])
    stores.answers.delete_many([MARKER])
    stores.search.refresh()
    stores.compact()
    for path in (tmp_path / "n").rglob("*"):
        assert MARKER.encode() not in (path.read_bytes() if path.is_file() else b""), path
        assert MARKER not in path.name
    assert [s.id for s in stores.search.lexical("entities", ["bee"], 5)] == ["kept"]
    stores.close()


@pytest.mark.parametrize("numkong", [True, False])
def test_neighbours_are_exact_however_narrow_the_vectors_lie(monkeypatch: pytest.MonkeyPatch, numkong: bool) -> None:
    if not numkong:
        monkeypatch.setattr(knn, "_numkong", lambda: None)
    chooser = np.random.default_rng(1)
    for spread in (1.0, 0.1, 0.01):
        vectors = (chooser.standard_normal(96) * 0.5 + spread * chooser.standard_normal((9000, 96))).astype(np.float32)
        vectors[100:400] = vectors[100]
        unit, codes, scales = knn.quantized(vectors)
        held = knn.Codes(codes, scales)
        barred = np.arange(0, 9000, 7)
        for at in (100, 4321):
            query = unit[at]
            places, scores = knn.nearest(query, 25, floats=unit, codes=held, barred=barred)
            exact = unit.astype(np.float64) @ query.astype(np.float64)
            exact[barred] = -np.inf
            np.testing.assert_allclose(scores[:25], np.sort(exact)[::-1][:25], atol=2e-6)
            assert len(np.intersect1d(places, barred)) == 0
            if at == 100:
                assert set(places.tolist()) >= set(np.setdiff1d(np.arange(100, 400), barred).tolist())
