"""A run in this process: from sources to a report."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol

from kgrag.engine import Engine
from kgrag.index.profile import BuildRecord
from kgrag.ingest.changes import Listing, list_sources
from kgrag.ingest.commit import IndexCounts, count_index, held
from kgrag.ingest.lease import namespace_lease
from kgrag.ingest.pipeline import Outcome, Pipeline
from kgrag.ingest.progress import Meter
from kgrag.ingest.report import MAX_FAILURES, RunReport
from kgrag.ingest.runner import LocalRunner
from kgrag.ingest.side import StoreSide
from kgrag.ingest.stages import IngestSettings, Stages, stages_of
from kgrag.ingest.stop import Stop
from kgrag.ingest.tables import TableRoot
from kgrag.ports import AnswerStore, Embedder, Stores


class OpenEngine(Protocol):
    """Opens an engine over stored answers; ``threads``: their store is not in the process, and worth a thread per call."""

    def __call__(self, answers: AnswerStore, *, threads: bool = False) -> Engine: ...


@dataclass(frozen=True, kw_only=True)
class IngestParts:
    """What a run is made of. The functions open things where they are used: here, or in a worker of a cluster, and so have
    to travel. ``tables`` is where the run's tables go, unless the settings say so."""

    namespace: str
    tables: str
    settings: IngestSettings
    open_stores: Callable[[], Stores]
    open_engine: OpenEngine
    open_embedder: Callable[[], Embedder | None]
    stages: Callable[[IngestSettings, Embedder | None], Stages] = stages_of


async def run_ingest(
    parts: IngestParts, sources: Sequence[str], *, progress: Meter | None = None, stop: Stop | None = None
) -> RunReport:
    """Bring the index up to date with these sources: files, folders, globs, ``-``, ``s3://``.

    Raises ConfigurationError, LeaseHeldError, ConfirmationRequired, RunStopped, PermanentModelError, TransientModelError
    (embeddings), StoreError; whatever it raises, the next run goes on from what was written."""
    progress, stop = progress or Meter(), stop or Stop()
    settings = parts.settings
    with ExitStack() as opened:
        stores = parts.open_stores()
        opened.callback(stores.close)
        opened.enter_context(namespace_lease(stores, settings.run.lease_seconds))
        side = StoreSide(stores, TableRoot(settings.run.tables or parts.tables), settings.run, stop, uuid.uuid4().hex)
        progress.begin("list", 0)
        listing = list_sources(sources, settings.documents)
        progress.end()
        engine = parts.open_engine(stores.answers)
        embedder = parts.open_embedder()
        try:
            runner = LocalRunner(side, engine, embedder, progress)
            outcome = await Pipeline(runner, parts.stages(settings, embedder)).run(listing)
        finally:
            await engine.aclose()
            if embedder is not None:
                await embedder.aclose()
        if not settings.run.keep_tables:
            side.tables.clear()
        report = report_of(parts.namespace, listing, outcome, count_index(side), held(side), progress)
        if report.wrote:
            kept = {key: value for key, value in report.as_json().items() if key not in ("failures", "warnings", "stages")}
            stores.status.write_value("last_run", {**kept, "ended": time.time()})
        return report


def report_of(
    namespace: str, listing: Listing, outcome: Outcome, counts: IndexCounts, build: BuildRecord | None, meter: Meter
) -> RunReport:
    """The report of a finished run."""
    documents = outcome.documents
    return RunReport(
        namespace=namespace,
        files=outcome.files.listed,
        unchanged_files=outcome.files.unchanged,
        new=documents.new if documents else 0,
        changed=documents.changed_count if documents else 0,
        unchanged=documents.unchanged if documents else 0,
        deleted=documents.deleted if documents else 0,
        failed=outcome.failures_total,
        units=counts.units,
        entities=counts.entities,
        relationships=counts.relationships,
        claims=counts.claims,
        communities=counts.communities,
        reports=counts.reports,
        failures=tuple(outcome.failures[:MAX_FAILURES]),
        failures_total=outcome.failures_total,
        warnings=(*(f"{count} files {reason} were left out." for reason, count in listing.left_out.items()), *outcome.warnings),
        usage=meter.paid,
        seconds=round(time.monotonic() - meter.started, 3),
        stages=meter.times(),
        methodologies=tuple(build.methodologies) if build else (),
        embedding=_embedding(build),
        wrote=outcome.wrote,
    )


def _embedding(build: BuildRecord | None) -> str:
    if build is None:
        return ""
    if not build.embedding:
        return "none; words alone find passages"
    strength = "strong, vectors may lead" if build.strong else "weak, words lead and vectors add at most half as much"
    return f"{build.embedding} ({strength}; vectors of {', '.join(build.vectors).replace('_', ' ')})"
