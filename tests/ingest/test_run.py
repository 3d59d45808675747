"""A run over small sources, in process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kgrag.errors import ConfirmationRequired, LeaseHeldError, OutputError, PermanentModelError, RunStopped, TransientModelError
from kgrag.ingest.report import RunReport
from kgrag.ingest.run import run_ingest
from kgrag.ingest.stop import Stop
from tests.ingest.pieces import Bench, different, snapshot

ADA = {"title": "Ada Lovelace", "text": "Ada Lovelace knew Charles Babbage in London.\nLondon has the Royal Society."}
BABBAGE = {"title": "Babbage", "text": "Charles Babbage built the Difference Engine."}
TURING = {"title": "Turing", "text": "Alan Turing read Ada Lovelace in London."}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    bench.write("a.jsonl", ADA, BABBAGE)
    bench.write("b.jsonl", TURING)
    return bench


async def ingest(bench: Bench, **kwargs: Any) -> RunReport:
    return await run_ingest(bench.parts(), bench.listing(), **kwargs)


async def fresh(bench: Bench, tmp_path: Path) -> dict[str, Any]:
    """What a first build of the same sources holds."""
    other = Bench(tmp_path / "fresh")
    other.source = bench.source
    for name in ("extraction", "description", "communities", "reports", "resolution"):
        setattr(other, name, getattr(bench, name))
    other.engine.fail = bench.engine.fail
    await ingest(other)
    return snapshot(other, communities=False)


async def test_a_first_run_makes_every_kind_of_row(bench: Bench) -> None:
    report = await ingest(bench)
    assert (report.new, report.units, report.entities, report.relationships) == (3, 4, 8, 8)
    assert report.communities == report.reports == 3
    assert report.exit_code == 0
    assert report.usage.calls == len(bench.engine.asked)
    assert set(report.methodologies) == {"graphrag", "lightrag", "hipporag"}
    assert "weak" in report.embedding


async def test_an_unchanged_corpus_asks_nothing_and_writes_nothing(bench: Bench) -> None:
    await ingest(bench)
    asked, embedded, before = len(bench.engine.asked), len(bench.embedder.embedded), snapshot(bench)
    files = {p: p.read_bytes() for p in bench.home.rglob("*") if p.is_file() and "index.db" not in p.name}
    report = await ingest(bench)
    assert not report.wrote
    assert report.unchanged_files == 2
    assert (len(bench.engine.asked), len(bench.embedder.embedded)) == (asked, embedded)
    assert snapshot(bench) == before
    assert {p: p.read_bytes() for p in bench.home.rglob("*") if p.is_file() and "index.db" not in p.name} == files


async def test_tables_are_removed_unless_they_are_kept(bench: Bench) -> None:
    await ingest(bench)
    assert not (bench.home / "test" / "tables").exists()
    bench.run = bench.run.model_copy(update={"keep_tables": True, "force_rebuild": True})
    await ingest(bench)
    manifest = json.loads((bench.home / "test" / "tables" / "extract" / "manifest.json").read_text())
    assert manifest["rows"] == 4
    assert manifest["files"] == ["shard-00000.parquet"]


async def test_an_added_document_costs_only_its_own_calls(bench: Bench, tmp_path: Path) -> None:
    await ingest(bench)
    asked = len(bench.engine.asked)
    bench.write("c.jsonl", {"title": "Hopper", "text": "Grace Hopper wrote Cobol."})
    await ingest(bench)
    read = [input.text for name, input in bench.engine.asked[asked:] if name == "extract"]
    assert read == ["Grace Hopper wrote Cobol."]
    assert different(snapshot(bench, communities=False), await fresh(bench, tmp_path)) == []


async def test_an_edit_reads_only_the_changed_units(bench: Bench, tmp_path: Path) -> None:
    await ingest(bench)
    asked, embedded = len(bench.engine.asked), len(bench.embedder.embedded)
    bench.write("a.jsonl", {**ADA, "text": ADA["text"] + "\nLondon has the Royal Mint."}, BABBAGE)
    report = await ingest(bench)
    assert (report.changed, report.unchanged, report.unchanged_files) == (1, 1, 1)
    assert [i.text for n, i in bench.engine.asked[asked:] if n == "extract"] == ["London has the Royal Mint."]
    assert not any(text.startswith("Babbage\n") for text in bench.embedder.embedded[embedded:])
    assert different(snapshot(bench, communities=False), await fresh(bench, tmp_path)) == []


async def test_a_deleted_document_takes_what_only_it_stated(bench: Bench, tmp_path: Path) -> None:
    await ingest(bench)
    (bench.source / "b.jsonl").unlink()
    bench.write("a.jsonl", ADA)
    report = await ingest(bench)
    assert report.deleted == 2
    assert report.entities == 4
    assert different(snapshot(bench, communities=False), await fresh(bench, tmp_path)) == []


@pytest.mark.parametrize(
    "change",
    [
        {"title": "Countess"},
        {"metadata": {"year": 1843}},
        {"text": "Nobody is here."},
        {"text": ""},
        {"text": ADA["text"] + "\n" + ADA["text"]},
    ],
    ids=["title", "metadata", "text", "empty", "twice"],
)
async def test_any_edit_equals_a_first_build(bench: Bench, tmp_path: Path, change: dict[str, Any]) -> None:
    await ingest(bench)
    bench.write("a.jsonl", {"id": "Ada Lovelace", **ADA, **change}, BABBAGE)
    await ingest(bench)
    assert different(snapshot(bench, communities=False), await fresh(bench, tmp_path)) == []
    bench.write("a.jsonl", ADA, BABBAGE)
    await ingest(bench)
    assert different(snapshot(bench, communities=False), await fresh(bench, tmp_path)) == []


@pytest.mark.parametrize("what", ["resolution", "extraction", "description"])
async def test_another_setting_equals_a_first_build_with_it(bench: Bench, tmp_path: Path, what: str) -> None:
    await ingest(bench)
    asked = len(bench.engine.asked)
    changes = {
        "resolution": {"aliases": {"Alan Turing": "Ada Lovelace"}},
        "extraction": {"gleaning": False},
        "description": {"max_tokens": 5, "chunk_tokens": 20},
    }
    setattr(bench, what, getattr(bench, what).model_copy(update=changes[what]))
    await ingest(bench)
    if what == "resolution":
        assert not [i for n, i in bench.engine.asked[asked:] if n == "extract"]
    assert different(snapshot(bench, communities=False), await fresh(bench, tmp_path)) == []


async def test_a_unit_that_fails_fails_its_document_and_no_other(bench: Bench, tmp_path: Path) -> None:
    def fail(task: str, input: Any) -> None:
        if task == "extract" and "Royal" in input.text:
            raise OutputError("the answer has no entities", remedy="Try another model.")

    bench.engine.fail = fail
    report = await ingest(bench)
    assert report.exit_code == 3
    assert [(f.path, f.reason) for f in report.failures] == [("a.jsonl, row 0", "the answer has no entities")]
    assert report.units == 4  # its text is found all the same
    states = [d.state for d in snapshot(bench)["documents"]]
    assert sorted(states) == ["failed", "processed", "processed"]
    bench.engine.fail = None
    report = await ingest(bench)
    assert report.exit_code == 0
    assert different(snapshot(bench, communities=False), await fresh(bench, tmp_path)) == []


async def test_a_document_that_keeps_failing_is_left_alone(bench: Bench) -> None:
    def fail(task: str, input: Any) -> None:
        if task == "extract" and "Royal" in input.text:
            raise OutputError("never")

    bench.engine.fail = fail
    for _ in range(bench.run.max_document_failures):
        assert (await ingest(bench)).failures_total == 1
    asked = len(bench.engine.asked)
    assert not (await ingest(bench)).wrote
    assert len(bench.engine.asked) == asked


async def test_a_broken_row_is_reported_and_deletes_nothing(bench: Bench) -> None:
    await ingest(bench)
    (bench.source / "a.jsonl").write_text(json.dumps(ADA) + "\n{broken\n")
    report = await ingest(bench)
    assert (report.deleted, report.failures_total) == (0, 1)
    assert report.failures[0].path == "a.jsonl, row 1"
    assert report.failures[0].remedy == "Mend the line."
    before = snapshot(bench)
    assert not (await ingest(bench)).wrote
    assert snapshot(bench) == before


async def test_an_empty_source_and_a_mass_deletion_ask_first(bench: Bench) -> None:
    bench.write("many.jsonl", *({"title": f"Row {i}", "text": f"Number {i}."} for i in range(20)))
    await ingest(bench)
    before = snapshot(bench)
    for path in bench.source.iterdir():
        path.unlink()
    with pytest.raises(ConfirmationRequired):
        await ingest(bench)
    bench.write("a.jsonl", ADA, BABBAGE)
    with pytest.raises(ConfirmationRequired, match="21 of the 23"):
        await ingest(bench)
    assert snapshot(bench) == before
    bench.run = bench.run.model_copy(update={"confirm_deletions": True})
    assert (await ingest(bench)).deleted == 21


async def test_a_second_run_is_refused_while_one_is_at_work(bench: Bench) -> None:
    stores = bench.parts().open_stores()
    lease = stores.status.acquire_lease("elsewhere/1/1/x", 60)
    with pytest.raises(LeaseHeldError):
        await ingest(bench)
    stores.status.release_lease(lease)
    stores.close()
    assert (await ingest(bench)).new == 3


@pytest.mark.parametrize("task", ["extract", "report"])
async def test_a_permanent_error_stops_the_run_and_the_next_goes_on(bench: Bench, tmp_path: Path, task: str) -> None:
    def fail(name: str, input: Any) -> None:
        if name == task:
            raise PermanentModelError("no such model")

    bench.engine.fail = fail
    with pytest.raises(PermanentModelError):
        await ingest(bench)
    bench.engine.fail = None
    await ingest(bench)
    assert different(snapshot(bench, communities=False), await fresh(bench, tmp_path)) == []


async def test_reports_that_failed_are_tried_again(bench: Bench) -> None:
    def fail(name: str, input: Any) -> None:
        if name == "report":
            raise TransientModelError("busy")

    bench.engine.fail = fail
    report = await ingest(bench)
    assert (report.communities, report.reports) == (3, 0)
    assert any("could not be written" in warning for warning in report.warnings)
    bench.engine.fail = None
    assert (await ingest(bench)).reports == 3


async def test_an_asked_stop_ends_at_a_safe_point_and_the_next_run_goes_on(bench: Bench, tmp_path: Path) -> None:
    stop = Stop()

    def ask(name: str, input: Any) -> None:
        stop.ask()

    bench.engine.fail = ask
    with pytest.raises(RunStopped) as stopped:
        await ingest(bench, stop=stop)
    assert "again" in str(stopped.value)
    bench.engine.fail = None
    await ingest(bench)
    assert different(snapshot(bench, communities=False), await fresh(bench, tmp_path)) == []
