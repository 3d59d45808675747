"""The same run on a cluster: the same tables, the same rows, whatever is lost on the way."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kgrag.errors import LeaseHeldError, RunStopped
from kgrag.ingest.ray_runner import run_ingest_on_ray
from kgrag.ingest.report import RunReport
from kgrag.ingest.run import IngestParts, run_ingest
from kgrag.ingest.stop import Stop
from tests.ingest.pieces import Bench, different, long, snapshot
from tests.ray.pieces import calls, open_engine

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own, of every kind

ROOT = Path(__file__).parents[2]


class RayBench(Bench):
    """A bench whose model is asked in whatever process, and writes its calls down."""

    def __init__(self, root: Path, source: Path | None = None, *, seconds: float = 0.0, **run: Any) -> None:
        super().__init__(root, source, **run)
        self.set("extraction", gleaning=False)
        self.calls = root / "calls"
        self.open_engine = partial(open_engine, self.calls, seconds)

    def parts(self, namespace: str = "test") -> IngestParts:
        return IngestParts(**{**vars(super().parts(namespace)), "open_engine": self.open_engine})

    async def on_ray(self, **kwargs: Any) -> RunReport:
        return await run_ingest_on_ray(self.parts(), [str(self.source)], **kwargs)

    def tables(self) -> dict[str, bytes]:
        root = self.home / "test" / "tables"
        return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def corpus(bench: Bench, documents: int) -> None:
    names = ["Ada Lovelace", "Charles Babbage", "London", "Alan Turing", "Grace Hopper", "Paris", "Konrad Zuse"]
    rows = []
    for i in range(documents):
        lines = [f"{names[i % 7]} met {names[(i * 5 + 1) % 7]} in Town {i}", f"{names[(i + 2) % 7]} is near Place {i}"]
        rows.append({"id": f"d{i}", "title": f"Document {i}", "text": long(*lines), "year": 1990 + i})
    bench.write("a.jsonl", *rows[: documents // 2])
    bench.write("b.jsonl", *rows[documents // 2 :])
    (bench.source / "broken.jsonl").write_text('{"id": "x"\n')


async def test_both_runners_write_the_same_tables_byte_for_byte(cluster: Any, tmp_path: Path) -> None:
    here = RayBench(tmp_path / "here", keep_tables=True)
    corpus(here, 14)
    there = RayBench(tmp_path / "there", here.source, keep_tables=True)
    expected = await run_ingest(here.parts(), [str(here.source)])
    report = await there.on_ray()
    assert report.failures == expected.failures
    assert (report.new, report.units, report.reports) == (expected.new, expected.units, expected.reports)
    assert report.usage.calls == expected.usage.calls == calls(there.calls).total()
    assert different(snapshot(there), snapshot(here)) == []
    made, wanted = there.tables(), here.tables()
    assert len(wanted) > 40
    assert made.keys() == wanted.keys()
    assert [name for name in wanted if made[name] != wanted[name]] == []
    again = await there.on_ray()
    assert not again.wrote
    assert calls(there.calls).total() == expected.usage.calls


async def test_a_stop_ends_the_run_and_the_next_goes_on_without_asking_again(cluster: Any, tmp_path: Path) -> None:
    bench = RayBench(tmp_path / "bench", seconds=0.3, rows_in_flight=2)
    corpus(bench, 14)
    stop = Stop()
    run = asyncio.ensure_future(bench.on_ray(stop=stop))
    await _asked(bench, 4)
    with pytest.raises(LeaseHeldError):
        await run_ingest(bench.parts(), [str(bench.source)])
    stop.ask()
    with pytest.raises(RunStopped):
        await asyncio.wait_for(run, 60)
    before = calls(bench.calls).total()
    calm = RayBench(tmp_path / "calm", bench.source)
    await run_ingest(calm.parts(), [str(calm.source)])
    assert before < calls(calm.calls).total()
    await run_ingest(bench.parts(), [str(bench.source)])
    assert different(snapshot(bench), snapshot(calm)) == []
    assert calls(bench.calls).total() <= calls(calm.calls).total() + 2  # those under way when it stopped


async def test_a_lost_node_changes_nothing(cluster: Any, tmp_path: Path) -> None:
    node = cluster.add_node(num_cpus=2, object_store_memory=100 << 20)
    bench = RayBench(tmp_path / "bench", seconds=0.3, rows_in_flight=2, model_actors=2)
    corpus(bench, 24)
    run = asyncio.ensure_future(bench.on_ray())
    await _asked(bench, 8)
    cluster.remove_node(node, allow_graceful=False)
    await asyncio.wait_for(run, 120)
    calm = RayBench(tmp_path / "calm", bench.source)
    await run_ingest(calm.parts(), [str(calm.source)])
    assert different(snapshot(bench), snapshot(calm)) == []
    assert calls(bench.calls).keys() == calls(calm.calls).keys()
    assert calls(bench.calls).total() <= calls(calm.calls).total() + 2  # those under way on the lost node


async def _asked(bench: RayBench, count: int, seconds: float = 90) -> None:
    """Returns once the model was called so often."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if bench.calls.exists() and calls(bench.calls).total() >= count:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{count} calls were not made in {seconds} s")


def test_a_submitted_job_reports_and_exits_like_the_command_line(cluster: Any, tmp_path: Path) -> None:
    from ray.job_submission import JobSubmissionClient

    source = tmp_path / "notes"
    source.mkdir()
    (source / "ada.md").write_text("# Ada Lovelace\n\nAda Lovelace worked with Charles Babbage in London.\n")
    (source / "broken.jsonl").write_text('{"id": "x"\n')
    client = JobSubmissionClient(f"http://{cluster.head_node.webui_url}")
    command = f"{sys.executable} {ROOT / 'jobs' / 'ingest.py'} {source} --json --set models.embedding.provider=none"
    variables = {"KGRAG_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}
    job = client.submit_job(entrypoint=command, runtime_env={"env_vars": variables})
    end = time.monotonic() + 120
    while not (status := client.get_job_status(job)).is_terminal() and time.monotonic() < end:
        time.sleep(0.3)
    logs = client.get_job_logs(job)
    report = json.loads(next(line for line in logs.splitlines() if line.startswith("{")))
    assert str(status) == "FAILED"  # partly done: any code but 0 is a failure to Ray
    assert "exit code 3" in client.get_job_info(job).message
    assert (report["new"], report["exit_code"], report["failures"][0]["path"]) == (1, 3, "broken.jsonl, row 1")
