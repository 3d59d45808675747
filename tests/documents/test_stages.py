"""Files to rows of documents to rows of text units."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kgrag import schemas
from kgrag.documents.chunk import ChunkSettings
from kgrag.documents.load import file_tables, list_files, resolve_sources
from kgrag.documents.settings import DocumentSettings
from kgrag.documents.stages import ChunkStage, ParseStage
from kgrag.ids import document_id


@pytest.fixture
def files(tmp_path: Path) -> pa.Table:
    (tmp_path / "a.txt").write_text("Ada runs Orbit.")
    (tmp_path / "b.jsonl").write_text('{"id": 1, "text": "Bo left.", "year": 1999}\nbroken\n')
    (tmp_path / "c.txt").write_bytes(b"")
    (tmp_path / "d.pdf").write_bytes(b"%PDF-1.4\n%%EOF")
    (tmp_path / "e.txt").write_text("Still read.")
    chosen = DocumentSettings()
    return pa.concat_tables(file_tables(list_files(resolve_sources([str(tmp_path)], chosen), chosen)))


def test_every_file_is_a_row_or_its_failure_is(files: pa.Table) -> None:
    table = ParseStage(DocumentSettings()).batch(files)
    assert table.schema == schemas.DOCUMENTS
    rows = table.to_pylist()
    assert [(r["path"], r["row"], bool(r["error"])) for r in rows] == [
        ("a.txt", None, False),
        ("b.jsonl", 1, False),
        ("b.jsonl", 2, True),
        ("c.txt", None, True),
        ("d.pdf", None, True),
        ("e.txt", None, False),
    ]
    assert rows[0]["id"] == document_id(rows[0]["scope"], "a.txt")
    errors = [json.loads(r["error"]) for r in rows if r["error"]]
    assert [e["type"] for e in errors] == ["DocumentError", "EmptyDocumentError", "DocumentError"]
    assert all(e["stage"] == "parse" and e["message"] and e["remedy"] for e in errors)


def test_documents_become_units_that_say_where_they_stand(files: pa.Table) -> None:
    documents = ParseStage(DocumentSettings()).batch(files)
    table = ChunkStage(ChunkSettings()).batch(documents)
    assert table.schema == schemas.TEXT_UNITS
    rows = table.to_pylist()
    assert [r["text"] for r in rows] == ["Ada runs Orbit.", "Bo left.", "Still read."]
    assert json.loads(rows[1]["metadata"]) == {"id": 1, "path": "b.jsonl", "year": 1999}
    texts = dict(zip(documents["id"].to_pylist(), documents["text"].to_pylist(), strict=True))
    assert all(texts[r["document_id"]][r["start"] : r["end"]] == r["text"] for r in rows)


def test_a_file_of_many_rows_comes_in_tables_of_bounded_size(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("".join(f'{{"id": {i}, "text": "text {i}"}}\n' for i in range(5000)))
    chosen = DocumentSettings()
    table = next(iter(file_tables(list_files(resolve_sources([str(tmp_path)], chosen), chosen))))
    sizes = [t.num_rows for t in ParseStage(chosen).batches(table)]
    assert sum(sizes) == 5000
    assert max(sizes) <= 2048


def test_stages_travel_to_workers(files: pa.Table) -> None:
    stage = ParseStage(DocumentSettings())
    before = stage.batch(files)
    assert pickle.loads(pickle.dumps(stage)).batch(files).equals(before)


def test_keys_change_with_what_changes_documents_only() -> None:
    def key(**options: Any) -> str:
        return ParseStage(DocumentSettings(**options)).key()

    assert key() == key(hidden=True, max_seconds=5, exclude=["x"])
    assert len({key(), key(text_column="body"), key(encoding="latin-1"), key(passwords=["x"])}) == 4
    assert ChunkStage(ChunkSettings()).key() != ChunkStage(ChunkSettings(max_tokens=100)).key()


def test_files_that_cannot_be_listed_pass_as_failures() -> None:
    row = {"scope": "s", "path": "sub/", "uri": "file:///s/", "digest": "", "size": -1, "error": '{"stage":"load"}'}
    table = ParseStage(DocumentSettings()).batch(pa.Table.from_pylist([row], schema=schemas.FILES))
    assert [(r["path"], r["error"]) for r in table.to_pylist()] == [("sub/", '{"stage":"load"}')]


def test_a_file_that_is_gone_is_a_failure_with_its_remedy(tmp_path: Path) -> None:
    row = {"scope": "s", "path": "x.txt", "uri": (tmp_path / "x.txt").as_uri(), "digest": "", "size": 1, "error": ""}
    [found] = ParseStage(DocumentSettings()).batch(pa.Table.from_pylist([row], schema=schemas.FILES)).to_pylist()
    assert "gone" in json.loads(found["error"])["message"]
