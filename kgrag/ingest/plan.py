"""What a run has to do for each document, and the rule that decides it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec
import pyarrow as pa

from kgrag.ids import digest
from kgrag.ingest.side import StoreSide
from kgrag.ingest.tables import ShardWriter, Table
from kgrag.records import DocumentStatus, Record, decode, encode

Kind = Literal["new", "changed", "moved", "deleted"]
Reading = Literal["", "restate", "extract"]

PLAN = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("body", pa.binary(), nullable=False)])


class DocumentPlan(Record, frozen=True, kw_only=True):
    """One document that differs from the registry. ``before`` is how the registry knows it, ``after`` how it will.

    ``reading`` says what becomes of the records of units that stay: nothing, their statements are made anew from the
    stored records (another resolution), or they are read again. ``again``: a dead run may have left any of the document
    half written, so all that stays is read and written once more without counting as changed.
    ``rewrite``: the rows of units that stay change too. ``core`` are units whose statements are new or made anew,
    ``fields`` those whose statements stay but whose items are derived again, ``removed`` those that are no longer there."""

    id: str
    kind: Kind
    before: DocumentStatus | None = None
    after: DocumentStatus | None = None
    reading: Reading = ""
    again: bool = False
    rewrite: bool = False
    core: list[str] = []
    fields: list[str] = []
    removed: list[str] = []


class Fingerprint(Record, frozen=True, kw_only=True):
    """What a document's units and records are made with. Each part is a digest without dots."""

    reading: str
    extraction: str
    resolution: str

    @property
    def text(self) -> str:
        return f"{self.reading}.{self.extraction}.{self.resolution}"

    def file_key(self, content: str) -> str:
        """What the registry keeps of a file that was read to the end: another reading reads it again."""
        return digest("file", content, self.text)


def plan_document(before: DocumentStatus | None, after: DocumentStatus, *, force: bool, max_failures: int) -> DocumentPlan | None:
    """What to do for a document that was read; None where nothing is.

    A failed document is read again, from stored answers where there are any, until it has failed too often."""
    if before is None:
        return DocumentPlan(id=after.id, kind="new", after=after, reading="extract", rewrite=True)
    retitled = before.title != after.title
    fields = retitled or before.metadata != after.metadata
    same = before.digest == after.digest and not fields and before.fingerprint == after.fingerprint
    again = before.state == "pending"
    failed = bool(before.error) and not (same and before.failure_count >= max_failures)
    if same and not again and not failed and not force:
        if (before.row, before.pages) == (after.row, after.pages):
            return None
        return DocumentPlan(id=after.id, kind="moved", before=before, after=_with_units_of(before, after))
    reading = "extract" if retitled or failed or force else _reading(before.fingerprint, after.fingerprint)
    return DocumentPlan(
        id=after.id, kind="changed", before=before, after=after, reading=reading, again=again, rewrite=fields or again or force
    )


def read_plans(side: StoreSide, table: Table) -> Iterator[DocumentPlan]:
    for rows in side.tables.batches(table, ["body"]):
        for body in rows["body"].to_pylist():
            yield decode(body, DocumentPlan)


class PlanWriter:
    """Plans in, a table out."""

    def __init__(self, side: StoreSide, name: str) -> None:
        self._out: ShardWriter = side.writer(name, PLAN)
        self._held: list[DocumentPlan] = []

    def add(self, plan: DocumentPlan) -> None:
        self._held.append(plan)
        if len(self._held) >= 256:
            self._flush()

    def close(self) -> Table:
        self._flush()
        return self._out.close()

    def _flush(self) -> None:
        held, self._held = self._held, []
        self._out.add(pa.table([[plan.id for plan in held], [encode(plan) for plan in held]], schema=PLAN))


def _reading(before: str, after: str) -> Reading:
    if before == after:
        return ""
    if "." not in before:
        return "extract"
    _, extraction, resolution = before.split(".")
    _, extraction_now, resolution_now = after.split(".")
    if extraction != extraction_now:
        return "extract"
    return "restate" if resolution != resolution_now else ""


def _with_units_of(before: DocumentStatus, after: DocumentStatus) -> DocumentStatus:
    kept = {name: getattr(before, name) for name in ("state", "units", "error", "failure_count", "retry_count")}
    return msgspec.structs.replace(after, **kept)
