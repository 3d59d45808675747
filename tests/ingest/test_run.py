"""A run over small sources, in process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kgrag.errors import (
    ConfigurationError,
    ConfirmationRequired,
    LeaseHeldError,
    OutputError,
    PermanentModelError,
    RunStopped,
    TransientModelError,
)
from kgrag.ingest.stop import Stop
from kgrag.records import Entity, TextUnit, decode
from tests.ingest.pieces import Bench, different, long, snapshot

KNEW, SOCIETY = "Ada Lovelace knew Charles Babbage in London", "London has the Royal Society"
ADA = {"id": "ada", "title": "Ada Lovelace", "text": long(KNEW, SOCIETY)}
BABBAGE = {"id": "babbage", "title": "Babbage", "text": "Charles Babbage built the Difference Engine."}
TURING = {"id": "turing", "title": "Turing", "text": "Alan Turing read Ada Lovelace in London."}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    bench.write("a.jsonl", ADA, BABBAGE)
    bench.write("b.jsonl", TURING)
    return bench


def units(bench: Bench) -> set[str]:
    return {decode(body, TextUnit).text for _, body, _ in snapshot(bench)["text_units"]}


async def fresh(bench: Bench, tmp_path: Path) -> dict[str, Any]:
    """What a first build of the same sources holds."""
    other = Bench(tmp_path / "fresh", source=bench.source)
    other.settings, other.embedder = bench.settings, bench.embedder
    other.engine.fail = bench.engine.fail
    await other.ingest()
    return snapshot(other, communities=False)


async def test_a_first_run_makes_every_kind_of_row(bench: Bench) -> None:
    report = await bench.ingest()
    assert (report.new, report.units, report.entities) == (3, 5, 8)
    assert report.communities == report.reports == 3
    assert report.exit_code == 0
    assert report.usage.calls == len(bench.engine.asked)
    assert set(report.methodologies) == {"graphrag", "lightrag", "hipporag"}
    assert "weak" in report.embedding


async def test_an_unchanged_corpus_asks_nothing_and_writes_nothing(bench: Bench) -> None:
    await bench.ingest()
    asked, embedded, before = len(bench.engine.asked), len(bench.embedder.embedded), snapshot(bench)
    files = {p: p.read_bytes() for p in bench.home.rglob("*") if p.is_file() and "index.db" not in p.name}
    report = await bench.ingest()
    assert not report.wrote
    assert report.unchanged_files == 2
    assert (len(bench.engine.asked), len(bench.embedder.embedded)) == (asked, embedded)
    assert snapshot(bench) == before
    assert {p: p.read_bytes() for p in bench.home.rglob("*") if p.is_file() and "index.db" not in p.name} == files


async def test_tables_are_removed_unless_they_are_kept(bench: Bench) -> None:
    await bench.ingest()
    assert not (bench.home / "test" / "tables").exists()
    bench.set("run", keep_tables=True, force_rebuild=True)
    await bench.ingest()
    manifest = json.loads((bench.home / "test" / "tables" / "extract" / "manifest.json").read_text())
    assert manifest["rows"] == 5
    assert manifest["files"] == ["shard-00000.parquet", "shard-00001.parquet"]


async def test_an_added_document_costs_only_its_own_calls(bench: Bench, tmp_path: Path) -> None:
    await bench.ingest()
    asked = len(bench.engine.asked)
    bench.write("c.jsonl", {"title": "Hopper", "text": "Grace Hopper wrote Cobol."})
    await bench.ingest()
    read = [input.text for name, input in bench.engine.asked[asked:] if name == "extract"]
    assert read == ["Grace Hopper wrote Cobol."]
    assert different(snapshot(bench, communities=False), await fresh(bench, tmp_path)) == []


async def test_an_edit_reads_only_the_changed_units(bench: Bench, tmp_path: Path) -> None:
    await bench.ingest()
    asked, embedded = len(bench.engine.asked), len(bench.embedder.embedded)
    before = units(bench)
    bench.write("a.jsonl", {**ADA, "text": f"{ADA['text']}\n\nLondon has the Royal Mint."}, BABBAGE)
    report = await bench.ingest()
    assert (report.changed, report.unchanged, report.unchanged_files) == (1, 1, 1)
    assert sorted(i.text for n, i in bench.engine.asked[asked:] if n == "extract") == sorted(units(bench) - before)
    assert not any(text.startswith("Babbage\n") for text in bench.embedder.embedded[embedded:])
    assert different(snapshot(bench, communities=False), await fresh(bench, tmp_path)) == []


async def test_a_deleted_document_takes_what_only_it_stated(bench: Bench, tmp_path: Path) -> None:
    await bench.ingest()
    (bench.source / "b.jsonl").unlink()
    bench.write("a.jsonl", ADA)
    report = await bench.ingest()
    assert report.deleted == 2
    assert report.entities == 4
    assert different(snapshot(bench, communities=False), await fresh(bench, tmp_path)) == []


@pytest.mark.parametrize(
    "change",
    [
        {"title": "Countess"},
        {"year": 1843},
        {"text": "Nobody is here."},
        {"text": ""},
        {"text": long(KNEW, SOCIETY, KNEW, SOCIETY)},
    ],
    ids=["title", "metadata", "text", "empty", "twice"],
)
async def test_any_edit_equals_a_first_build(bench: Bench, tmp_path: Path, change: dict[str, Any]) -> None:
    await bench.ingest()
    bench.write("a.jsonl", {**ADA, **change}, BABBAGE)
    await bench.ingest()
    assert different(snapshot(bench, communities=False), await fresh(bench, tmp_path)) == []
    bench.write("a.jsonl", ADA, BABBAGE)
    await bench.ingest()
    assert different(snapshot(bench, communities=False), await fresh(bench, tmp_path)) == []


@pytest.mark.parametrize(
    ("what", "values"),
    [
        ("resolution", {"aliases": {"Alan Turing": "Ada Lovelace"}}),
        ("resolution", {"fold_accents": False}),
        ("extraction", {"gleaning": False}),
        ("descriptions", {"max_tokens": 5, "chunk_tokens": 20}),
        ("chunking", {"max_tokens": 40}),
        ("reports", {"max_entities_per_report": 2}),
        ("index", {"language": "de"}),
        ("index", {"methodologies": ["lightrag"]}),
    ],
)
async def test_another_setting_equals_a_first_build_with_it(
    bench: Bench, tmp_path: Path, what: str, values: dict[str, Any]
) -> None:
    await bench.ingest()
    asked = len(bench.engine.asked)
    bench.set(what, **values)
    await bench.ingest()
    if what == "resolution":
        assert not [i for n, i in bench.engine.asked[asked:] if n == "extract"]
    assert different(snapshot(bench, communities=False), await fresh(bench, tmp_path)) == []


async def test_another_embedding_makes_every_vector_anew_and_asks_nothing(bench: Bench, tmp_path: Path) -> None:
    await bench.ingest()
    asked, embedded = len(bench.engine.asked), len(bench.embedder.embedded)
    bench.embedder.identity = "hash-of-another-kind"
    report = await bench.ingest()
    assert report.embedding.startswith("hash-of-another-kind")
    assert len(bench.engine.asked) == asked
    assert len(bench.embedder.embedded) == 2 * embedded
    assert different(snapshot(bench, communities=False), await fresh(bench, tmp_path)) == []


async def test_vectors_of_another_length_are_refused_before_anything_is_written(bench: Bench) -> None:
    await bench.ingest()
    before = snapshot(bench)
    bench.embedder.identity, bench.embedder.dimension = "hash-8", 8
    with pytest.raises(ConfigurationError, match="16 numbers"):
        await bench.ingest()
    assert snapshot(bench) == before


async def test_similar_spellings_are_joined_where_asked_and_parted_again(bench: Bench, tmp_path: Path) -> None:
    bench.set("resolution", fuzzy=True)
    await bench.ingest()
    bench.write("c.jsonl", {"id": "c", "title": "Note", "text": "Alan Turingg read Charles Babbagee in Londonn."})
    await bench.ingest()
    joined = await fresh(bench, tmp_path)
    names = [decode(body, Entity).name for _, body, _ in joined["entities"]]
    assert "Alan Turing" in names
    assert "Alan Turingg" not in names
    assert different(snapshot(bench, communities=False), joined) == []
    (bench.source / "c.jsonl").unlink()
    (bench.source / "b.jsonl").unlink()
    await bench.ingest()
    assert different(snapshot(bench, communities=False), await fresh(bench, tmp_path / "less")) == []
    asked = len(bench.engine.asked)
    bench.write("c.jsonl", {"id": "c", "title": "Note", "text": "Alan Turingg read Charles Babbagee in Londonn."})
    await bench.ingest()
    bench.set("resolution", fuzzy=False)
    await bench.ingest()
    assert not [i for n, i in bench.engine.asked[asked:] if n == "extract" and "Ada" in i.text]
    assert different(snapshot(bench, communities=False), await fresh(bench, tmp_path / "parted")) == []


async def test_a_unit_that_fails_fails_its_document_and_no_other(bench: Bench, tmp_path: Path) -> None:
    def fail(task: str, input: Any) -> None:
        if task == "extract" and "Royal" in input.text:
            raise OutputError("the answer has no entities", remedy="Try another model.")

    bench.engine.fail = fail
    report = await bench.ingest()
    assert report.exit_code == 3
    assert [(f.path, f.reason) for f in report.failures] == [("a.jsonl, row 1", "the answer has no entities")]
    assert report.units == 5  # its text is found all the same
    states = [d.state for d in snapshot(bench)["documents"]]
    assert sorted(states) == ["failed", "processed", "processed"]
    bench.engine.fail = None
    report = await bench.ingest()
    assert report.exit_code == 0
    assert different(snapshot(bench, communities=False), await fresh(bench, tmp_path)) == []


async def test_a_document_that_keeps_failing_is_left_alone(bench: Bench) -> None:
    def fail(task: str, input: Any) -> None:
        if task == "extract" and "Royal" in input.text:
            raise OutputError("never")

    bench.engine.fail = fail
    for _ in range(bench.settings.run.max_document_failures):
        assert (await bench.ingest()).failures_total == 1
    asked = len(bench.engine.asked)
    assert not (await bench.ingest()).wrote
    assert len(bench.engine.asked) == asked


async def test_a_broken_row_is_reported_and_deletes_nothing(bench: Bench) -> None:
    await bench.ingest()
    (bench.source / "a.jsonl").write_text(json.dumps(ADA) + "\n{broken\n")
    report = await bench.ingest()
    assert (report.deleted, report.failures_total) == (0, 1)
    assert report.failures[0].path == "a.jsonl, row 2"
    assert report.failures[0].remedy
    before = snapshot(bench)
    assert not (await bench.ingest()).wrote
    assert snapshot(bench) == before


async def test_an_empty_source_and_a_mass_deletion_ask_first(bench: Bench) -> None:
    bench.write("many.jsonl", *({"title": f"Row {i}", "text": f"Number {i}."} for i in range(20)))
    await bench.ingest()
    before = snapshot(bench)
    for path in bench.source.iterdir():
        path.unlink()
    with pytest.raises(ConfirmationRequired):
        await bench.ingest()
    bench.write("a.jsonl", ADA, BABBAGE)
    with pytest.raises(ConfirmationRequired, match="21 of the 23"):
        await bench.ingest()
    assert snapshot(bench) == before
    bench.set("run", confirm_deletions=True)
    assert (await bench.ingest()).deleted == 21


async def test_a_second_run_is_refused_while_one_is_at_work(bench: Bench) -> None:
    stores = bench.parts().open_stores()
    lease = stores.status.acquire_lease("elsewhere/1/1/x", 60)
    with pytest.raises(LeaseHeldError):
        await bench.ingest()
    stores.status.release_lease(lease)
    stores.close()
    assert (await bench.ingest()).new == 3


@pytest.mark.parametrize("task", ["extract", "report"])
async def test_a_permanent_error_stops_the_run_and_the_next_goes_on(bench: Bench, tmp_path: Path, task: str) -> None:
    def fail(name: str, input: Any) -> None:
        if name == task:
            raise PermanentModelError("no such model")

    bench.engine.fail = fail
    with pytest.raises(PermanentModelError):
        await bench.ingest()
    bench.engine.fail = None
    await bench.ingest()
    assert different(snapshot(bench, communities=False), await fresh(bench, tmp_path)) == []


async def test_reports_that_failed_are_tried_again(bench: Bench) -> None:
    def fail(name: str, input: Any) -> None:
        if name == "report":
            raise TransientModelError("busy")

    bench.engine.fail = fail
    report = await bench.ingest()
    assert (report.communities, report.reports) == (3, 0)
    assert any("could not be written" in warning for warning in report.warnings)
    bench.engine.fail = None
    assert (await bench.ingest()).reports == 3


async def test_an_asked_stop_ends_at_a_safe_point_and_the_next_run_goes_on(bench: Bench, tmp_path: Path) -> None:
    stop = Stop()

    def ask(name: str, input: Any) -> None:
        stop.ask()

    bench.engine.fail = ask
    with pytest.raises(RunStopped) as stopped:
        await bench.ingest(stop=stop)
    assert "again" in str(stopped.value)
    bench.engine.fail = None
    await bench.ingest()
    assert different(snapshot(bench, communities=False), await fresh(bench, tmp_path)) == []
