"""What a second run does: nothing where nothing changed, and only what changed where something did."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kgrag import build, sample
from kgrag.errors import ConfirmationRequired, LeaseHeldError, RunStopped, UnsupportedFilesystemError
from kgrag.ingest.report import RunReport
from kgrag.ingest.run import run_ingest
from kgrag.ingest.stop import Stop
from kgrag.records import Context
from kgrag.settings import Settings

Make = Callable[..., Settings]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copy = tmp_path / "documents"
    shutil.copytree(sample.DOCUMENTS, copy)
    return copy


def ingest(settings: Settings, folder: Path, stop: Stop | None = None) -> RunReport:
    return asyncio.run(run_ingest(build.ingest_parts(settings), [str(folder)], stop=stop))


def search(settings: Settings, question: str, **options: object) -> Context:
    async def run() -> Context:
        engine = await build.open_query_engine(settings)
        try:
            return await engine.search(question, **options)  # type: ignore[arg-type]
        finally:
            await engine.aclose()

    return asyncio.run(run())


def contents(home: Path) -> dict[str, str]:
    return {
        str(path.relative_to(home)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(home.rglob("*"))
        if path.is_file()
        and path.suffix not in {".db-wal", ".db-shm", ".lock"}
        and "-wal" not in path.name
        and "-shm" not in path.name
    }


def test_a_run_over_an_unchanged_corpus_does_nothing(settings_in: Make, folder: Path) -> None:
    settings = settings_in()
    first = ingest(settings, folder)
    assert (first.new, first.failed, first.exit_code, first.wrote) == (31, 0, 0, True)
    again = ingest(settings, folder)
    assert (again.new, again.changed, again.deleted, again.wrote) == (0, 0, 0, False)
    assert again.unchanged_files == again.files == 25
    assert (again.units, again.entities, again.relationships) == (first.units, first.entities, first.relationships)


def test_an_edit_is_found_and_what_it_replaced_is_gone(settings_in: Make, folder: Path) -> None:
    settings = settings_in()
    ingest(settings, folder)
    path = folder / "region" / "port-solenne.md"
    path.write_text(path.read_text(encoding="utf-8").replace("51,700", "52,900"), encoding="utf-8")
    report = ingest(settings, folder)
    assert (report.new, report.changed, report.deleted) == (0, 1, 0)
    texts = [hit.text for hit in search(settings, "How many inhabitants does Port Solenne have?").hits]
    assert any("52,900" in text for text in texts)
    assert not any("51,700" in text for text in texts)


def test_a_deleted_document_leaves_nothing_behind(settings_in: Make, folder: Path) -> None:
    settings = settings_in()
    ingest(settings, folder)
    (folder / "records" / "apprentices.txt").unlink()
    report = ingest(settings, folder)
    assert report.deleted == 1
    assert all(hit.path != "records/apprentices.txt" for hit in search(settings, "Mattis Brandt", top_k=50).hits)
    stores = build.open_stores(settings)
    try:
        assert not [vertex.name for vertex in stores.graph.scan_vertices() if "Mattis" in vertex.name]
    finally:
        stores.close()


def test_an_edit_and_back_equals_a_fresh_build(settings_in: Make, folder: Path, tmp_path: Path) -> None:
    settings, fresh = settings_in(), settings_in(home=tmp_path / "fresh")
    ingest(settings, folder)
    extra = folder / "extra.txt"
    extra.write_text("Veyra Tidal, Inc. sold the Sula to Baltmar Shipping. Idris Calloway objected.", encoding="utf-8")
    ingest(settings, folder)
    extra.unlink()
    ingest(settings, folder)
    ingest(fresh, folder)
    one, other = build.open_stores(settings), build.open_stores(fresh)
    try:
        for collection in ("text_units", "entities", "relationships"):
            assert one.search.scan(collection) == other.search.scan(collection)
        assert one.graph.scan_edges() == other.graph.scan_edges()
        assert one.graph.scan_vertices() == other.graph.scan_vertices()
    finally:
        one.close()
        other.close()


def test_bad_files_fail_alone_with_a_remedy(settings_in: Make, folder: Path) -> None:
    (folder / "empty.txt").write_text("")
    (folder / "broken.json").write_text("{")
    (folder / "not-really.pdf").write_bytes(b"\x00\x01\x02" * 100)
    report = ingest(settings_in(), folder)
    failed = {failure.path: failure for failure in report.failures}
    assert {"empty.txt", "broken.json", "not-really.pdf"} <= set(failed)
    assert all(failure.reason and failure.remedy for failure in failed.values())
    assert report.exit_code == 3
    assert report.new == 31


def test_most_documents_gone_asks_first(settings_in: Make, folder: Path) -> None:
    ingest(settings_in(), folder)
    for name in ("company", "people", "region", "research"):
        shutil.rmtree(folder / name)
    with pytest.raises(ConfirmationRequired):
        ingest(settings_in(), folder)
    assert ingest(settings_in(**{"run.confirm_deletions": True}), folder).deleted > 10


def test_a_second_run_at_once_is_refused(settings_in: Make, folder: Path) -> None:
    settings = settings_in()
    ingest(settings, folder)
    stores = build.open_stores(settings, mode="write")
    try:
        lease = stores.status.acquire_lease("another run", 60)
        with pytest.raises(LeaseHeldError):
            ingest(settings, folder)
        stores.status.release_lease(lease)
    finally:
        stores.close()
    assert ingest(settings, folder).wrote is False


def test_a_stopped_run_goes_on(settings_in: Make, folder: Path) -> None:
    stop = Stop()
    stop.ask()
    with pytest.raises(RunStopped):
        ingest(settings_in(), folder, stop)
    assert ingest(settings_in(), folder).new == 31


def test_namespaces_are_apart(settings_in: Make, folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "note.txt").write_text("Zebulon Quark keeps bees in Ulm.", encoding="utf-8")
    ingest(settings_in(namespace="a"), folder)
    ingest(settings_in(namespace="b"), other)
    assert build.namespaces(settings_in()) == ["a", "b"]
    assert [hit.path for hit in search(settings_in(namespace="b"), "Who keeps bees?").hits] == ["note.txt"]
    assert all("Zebulon" not in hit.text for hit in search(settings_in(namespace="a"), "Zebulon Quark", top_k=50).hits)


def test_reading_changes_no_file(settings_in: Make, folder: Path) -> None:
    settings = settings_in()
    ingest(settings, folder)
    before = contents(settings.home)
    search(settings, "Who founded Veyra Tidal?", strategy="mix")
    assert contents(settings.home) == before


def test_a_home_on_a_network_is_refused_by_name(settings_in: Make, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgrag.backends.local.filesystem.filesystem_of", lambda folder, mounts=None: "nfs4")
    with pytest.raises(UnsupportedFilesystemError, match="nfs4"):
        ingest(settings_in(), folder)
