"""The end of a run: the registry says what was done, then nothing is pending any more."""

from __future__ import annotations

import time
from collections.abc import Mapping

import msgspec

from kgrag.index.profile import BuildRecord
from kgrag.ingest.changes import DocumentScan, FileScan
from kgrag.ingest.communities import partition
from kgrag.ingest.evidence import LostItems, without_record
from kgrag.ingest.plan import DocumentPlan, Fingerprint, read_plans
from kgrag.ingest.report import MAX_FAILURES, Failure
from kgrag.ingest.side import StoreSide, batched
from kgrag.ingest.tables import Table
from kgrag.records import DocumentStatus
from kgrag.stage import RowError

_error = msgspec.json.Decoder(RowError).decode

_OWN = frozenset({"ItemError", "OutputError", "TruncatedError", "RejectedError", "DocumentError"})
"""Errors that count against a document: another run would fail alike."""


class FailedDocuments(msgspec.Struct, frozen=True, kw_only=True):
    """Documents a call failed for: as many as a report names, and how many in all."""

    named: list[Failure]
    total: int


class IndexCounts(msgspec.Struct, frozen=True, kw_only=True):
    units: int = 0
    entities: int = 0
    relationships: int = 0
    claims: int = 0
    communities: int = 0
    reports: int = 0


def held(side: StoreSide) -> BuildRecord | None:
    """What the last run left behind; None where there was none."""
    value = side.stores.status.read_value("build")
    return None if value is None else msgspec.convert(value, BuildRecord)


def unfinished(side: StoreSide) -> bool:
    """Whether a run that died left items that no pending document leads to."""
    return bool(LostItems(side.stores.status))


def refresh(side: StoreSide) -> None:
    """What was written becomes visible to searches."""
    side.stores.search.refresh()


def commit(
    side: StoreSide,
    plan: Table,
    unread: Table | None,
    uncut: Mapping[str, str],
    scan: FileScan,
    documents: DocumentScan,
    fingerprint: Fingerprint,
    joined: dict[str, str] | None = None,
) -> FailedDocuments:
    """Drop the records of removed units, then settle every document of the plan and every file that was read whole.
    ``joined`` are the aliases that statements are made with now (None: as before)."""
    failed = dict(uncut) | _unread(side, unread)
    broken = set(documents.incomplete)
    failures: list[Failure] = []
    total = 0
    _drop_unread(side, unread)
    for part in batched(read_plans(side, plan), 256):
        settled = [_settled(document, failed, side.run_id) for document in part if document.after]
        for status in settled:
            if status.state == "failed" and status.failure_count < side.settings.max_document_failures:
                broken.add((status.scope, status.path))
            if status.id in failed:
                total += 1
                if len(failures) < MAX_FAILURES:
                    failures.append(_failure(status, _error(failed[status.id])))
        with side.stores.transaction():
            side.stores.records.delete([unit for document in part for unit in document.removed])
            side.stores.status.put(settled)
            side.stores.status.delete([document.id for document in part if document.after is None])
    _settle(side, scan, broken, fingerprint)
    if joined is not None:
        side.stores.status.write_value("aliases", joined)
    LostItems(side.stores.status).clear()
    return FailedDocuments(named=failures, total=total)


def settle_files(side: StoreSide, scan: FileScan, documents: DocumentScan, fingerprint: Fingerprint) -> None:
    """For files that changed without any document of theirs: they were read to the end."""
    _settle(side, scan, set(documents.incomplete), fingerprint)


def _settled(plan: DocumentPlan, failed: Mapping[str, str], run_id: str) -> DocumentStatus:
    after, before = plan.after, plan.before
    assert after is not None
    if plan.kind == "moved" or after.id not in failed:
        return msgspec.structs.replace(after, run_id=run_id, updated_at=time.time())
    error = _error(failed[after.id])
    same = before is not None and before.digest == after.digest
    failures, retries = (before.failure_count, before.retry_count) if before is not None and same else (0, 0)
    own = error.type in _OWN
    return msgspec.structs.replace(
        after,
        state="failed",
        error=f"{error.message} {error.remedy}".rstrip(),
        failure_count=failures + own,
        retry_count=0 if own else retries + 1,
        run_id=run_id,
        updated_at=time.time(),
    )


def _failure(status: DocumentStatus, error: RowError) -> Failure:
    where = status.path if status.row is None else f"{status.path}, row {status.row}"
    return Failure(path=where, stage=error.stage, kind=error.type, reason=error.message, remedy=error.remedy)


def _unread(side: StoreSide, unread: Table | None) -> dict[str, str]:
    """Per document the first error of its units."""
    found: dict[str, str] = {}
    if unread is not None:
        for rows in side.tables.batches(unread):
            for document, error in zip(rows["document_id"].to_pylist(), rows["error"].to_pylist(), strict=True):
                found.setdefault(document, error)
    return found


def _drop_unread(side: StoreSide, unread: Table | None) -> None:
    """A unit that could not be read again states nothing, as in a first build."""
    if unread is not None:
        for units in batched(without_record(side, unread)):
            side.stores.records.delete(units)


def _settle(side: StoreSide, scan: FileScan, broken: set[tuple[str, str]], fingerprint: Fingerprint) -> None:
    status = side.stores.status
    known: dict[str, dict[str, str]] = {}
    for rows in side.tables.batches(scan.files, ["scope", "path", "digest"]):
        digests: dict[str, dict[str, str]] = {}
        for scope, path, content in zip(*(rows[name].to_pylist() for name in ("scope", "path", "digest")), strict=True):
            if scope not in known:
                known[scope] = status.files(scope)
            key = "" if (scope, path) in broken else fingerprint.file_key(content)
            if known[scope].get(path) != key:
                digests.setdefault(scope, {})[path] = key
        for scope, found in digests.items():
            status.put_files(scope, found)
    for scope in dict.fromkeys(scope for scope, _ in scan.gone):
        status.put_files(scope, {}, [path for other, path in scan.gone if other == scope])


def write_build(side: StoreSide, build: BuildRecord) -> None:
    """Record what the index holds, where that is new."""
    if held(side) != build:
        side.stores.status.write_value("build", msgspec.to_builtins(build))


def count_index(side: StoreSide) -> IndexCounts:
    search = side.stores.search
    return IndexCounts(
        units=search.count("text_units"),
        entities=search.count("entities"),
        relationships=search.count("relationships"),
        claims=search.count("claims"),
        communities=partition(side).communities,
        reports=search.count("reports"),
    )
