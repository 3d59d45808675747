"""What changed: source files against the registry, then documents, then text units. Nothing is written to a store here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec
import pyarrow as pa

from kgrag import schemas
from kgrag.documents.load import file_tables, list_files, resolve_sources
from kgrag.documents.settings import DocumentSettings
from kgrag.errors import ConfirmationRequired, EmptyDocumentError
from kgrag.ingest.plan import DocumentPlan, Fingerprint, PlanWriter, plan_document, read_plans
from kgrag.ingest.report import MAX_FAILURES, Failure
from kgrag.ingest.side import BATCH, StoreSide, batched
from kgrag.ingest.tables import Table
from kgrag.records import DocumentStatus, Metadata, Span
from kgrag.stage import RowError

_metadata = msgspec.json.Decoder(Metadata).decode
_error = msgspec.json.Decoder(RowError).decode

_FILES_PER_SHARD = 64
_SOURCE_BYTES = 4 << 20
_ASK_FROM = 10
"""Documents of a source from which a mass deletion asks (defaults of the reference)."""


@dataclass(frozen=True, kw_only=True)
class Listing:
    """``files`` are all files of these scopes (``schemas.FILES``); ``left_out`` counts others by why they are none.
    ``sources`` live as long as the listing does: what was piped in is in a temporary file of its source."""

    files: pa.Table
    scopes: list[str]
    left_out: dict[str, int] = field(default_factory=dict)
    sources: tuple[object, ...] = ()


class FileScan(msgspec.Struct, frozen=True, kw_only=True):
    """Source files against the registry: ``files`` are those to read, ``gone`` those that are there no more."""

    files: Table
    listed: int
    gone: list[tuple[str, str]]

    @property
    def unchanged(self) -> int:
        return self.listed - self.files.rows


class DocumentScan(msgspec.Struct, frozen=True, kw_only=True):
    """Documents against the registry: ``changed`` are those to cut into units, ``plan`` all that differ.
    ``incomplete`` are files with a failure of their own."""

    changed: Table
    plan: Table
    new: int = 0
    changed_count: int = 0
    unchanged: int = 0
    deleted: int = 0
    failures: list[Failure] = []
    failures_total: int = 0
    incomplete: list[tuple[str, str]] = []
    warnings: list[str] = []


class UnitScan(msgspec.Struct, frozen=True, kw_only=True):
    """Text units against the registry: ``read`` are those whose record and row are made anew, ``rewrite`` those of which
    only the row is. ``failed`` maps documents that could not be cut to why."""

    plan: Table
    read: Table
    rewrite: Table
    restated: int = 0
    remade: bool = False
    failed: dict[str, str] = {}


def list_sources(sources: Sequence[str], settings: DocumentSettings) -> Listing:
    """Every file of these sources with its digest. Raises ConfigurationError where a source does not exist."""
    found = resolve_sources(sources, settings)
    left_out: Counter[str] = Counter()
    tables = list(file_tables(list_files(found, settings, left_out)))
    return Listing(
        files=pa.concat_tables([schemas.FILES.empty_table(), *tables]),
        scopes=[source.scope for source in found],
        left_out=dict(sorted(left_out.items())),
        sources=tuple(found),
    )


def compare_files(side: StoreSide, listing: Listing, fingerprint: Fingerprint) -> FileScan:
    """Source files against the registry. Raises ConfirmationRequired where a scope that had documents lists no file."""
    listed = listing.files
    known = {scope: side.stores.status.files(scope) for scope in listing.scopes}
    out = side.writer("files", schemas.FILES)
    wanted: list[int] = []
    weight = 0
    seen: dict[str, set[str]] = {scope: set() for scope in listing.scopes}
    unseen: dict[str, list[str]] = {scope: [] for scope in listing.scopes}
    columns = zip(*(listed[name].to_pylist() for name in ("scope", "path", "digest", "size", "error")), strict=True)
    for index, (scope, path, content, size, error) in enumerate(columns):
        seen[scope].add(path)
        if error and (path.endswith("/") or not path):
            unseen[scope].append(path.removeprefix("./").removeprefix("/"))  # a folder that cannot be listed
        if known[scope].get(path) == fingerprint.file_key(content) and not side.settings.force_rebuild:
            continue
        wanted.append(index)
        weight += max(size, 0)
        if len(wanted) >= _FILES_PER_SHARD or weight >= _SOURCE_BYTES:
            out.shard(listed.take(pa.array(wanted, pa.int64())))
            wanted, weight = [], 0
    if wanted:
        out.shard(listed.take(pa.array(wanted, pa.int64())))
    for scope in listing.scopes:
        if known[scope] and not seen[scope] and not side.settings.confirm_deletions:
            raise ConfirmationRequired(
                f"{scope} holds no document any more; {len(known[scope])} files of it are indexed.",
                subject=scope,
                remedy="Check that it is there and mounted. To delete its documents from the index, confirm deletions.",
            )
    gone = [
        (scope, path)
        for scope in listing.scopes
        for path in sorted(known[scope].keys() - seen[scope])
        if not any(path.startswith(folder) for folder in unseen[scope])
    ]
    return FileScan(files=out.close(), listed=listed.num_rows, gone=gone)


def compare_documents(side: StoreSide, documents: Table, scan: FileScan, fingerprint: Fingerprint) -> DocumentScan:
    """``documents`` are those of ``scan.files``. Raises ConfirmationRequired before a mass deletion."""
    found = _DocumentDiff(side, fingerprint)
    for rows in side.tables.batches(documents):
        side.stop.check()
        for start in range(0, rows.num_rows, BATCH):
            found.batch(rows.slice(start, BATCH))
    found.end_file()
    for scope, path in scan.gone:
        found.delete(side.stores.status.of_file(scope, path))
    result = found.close()
    _confirm(side, found.deletions)
    return result


class _DocumentDiff:
    """The documents of a run, file after file."""

    def __init__(self, side: StoreSide, fingerprint: Fingerprint) -> None:
        self._side, self._fingerprint = side, fingerprint.text
        self._changed = side.writer("changed", schemas.DOCUMENTS)
        self._plans = PlanWriter(side, "document_plan")
        self._file: tuple[str, str] | None = None
        self._seen: set[str] = set()
        self._failed = self._unread = False
        self._counts = {"new": 0, "changed": 0, "moved": 0, "unchanged": 0, "deleted": 0}
        self._failures: list[Failure] = []
        self._failures_total = 0
        self._incomplete: list[tuple[str, str]] = []
        self._warnings: list[str] = []
        self.deletions: dict[str, int] = {}

    def batch(self, rows: pa.Table) -> None:
        known = self._side.stores.status.get([id for id in rows["id"].to_pylist() if id])
        names = ("id", "scope", "path", "title", "digest", "metadata", "pages", "row", "warnings", "error")
        keep: list[int] = []
        for index, row in enumerate(zip(*(rows[name].to_pylist() for name in names), strict=True)):
            id, scope, path, title, content, fields, pages, number, warnings, error = row
            if (scope, path) != self._file:
                self.end_file()
                self._file = (scope, path)
            if error:
                self._fail(path, number, _error(error))
                continue
            if id in self._seen:
                self._warnings.append(f"{path}: a second document of the same identity was left out.")
                continue
            self._seen.add(id)
            self._warnings += [f"{path}: {warning}" for warning in warnings]
            after = DocumentStatus(
                id=id,
                scope=scope,
                path=path,
                title=title,
                digest=content,
                metadata=_metadata(fields) if fields else {},
                pages=pages,
                row=number,
                fingerprint=self._fingerprint,
                state="processed",
            )
            if self._plan(known.get(id), after):
                keep.append(index)
        self._changed.add(rows.take(pa.array(keep, pa.int64())))

    def _plan(self, before: DocumentStatus | None, after: DocumentStatus) -> bool:
        settings = self._side.settings
        plan = plan_document(before, after, force=settings.force_rebuild, max_failures=settings.max_document_failures)
        self._counts[plan.kind if plan else "unchanged"] += 1
        if plan:
            self._plans.add(plan)
        return plan is not None and plan.kind != "moved"

    def end_file(self) -> None:
        """What the registry has of the file just read and the file no longer states is deleted, unless part of it could not
        be read."""
        if self._file is None:
            return
        if self._failed:
            self._incomplete.append(self._file)
        if not self._unread:
            self.delete(d for d in self._side.stores.status.of_file(*self._file) if d.id not in self._seen)
        self._file, self._seen, self._failed, self._unread = None, set(), False, False

    def delete(self, documents: Iterable[DocumentStatus]) -> None:
        for document in documents:
            self._counts["deleted"] += 1
            self.deletions[document.scope] = self.deletions.get(document.scope, 0) + 1
            self._plans.add(DocumentPlan(id=document.id, kind="deleted", before=document))

    def _fail(self, path: str, row: int | None, error: RowError) -> None:
        self._failed = True
        self._unread = self._unread or error.type != EmptyDocumentError.__name__  # what is emptied was read
        self._failures_total += 1
        if len(self._failures) < MAX_FAILURES:
            where = path if row is None else f"{path}, row {row}"
            self._failures.append(
                Failure(path=where, stage=error.stage, kind=error.type, reason=error.message, remedy=error.remedy)
            )

    def close(self) -> DocumentScan:
        return DocumentScan(
            changed=self._changed.close(),
            plan=self._plans.close(),
            new=self._counts["new"],
            changed_count=self._counts["changed"],
            unchanged=self._counts["unchanged"] + self._counts["moved"],
            deleted=self._counts["deleted"],
            failures=self._failures,
            failures_total=self._failures_total,
            incomplete=self._incomplete,
            warnings=self._warnings[:MAX_FAILURES],
        )


def _confirm(side: StoreSide, deletions: dict[str, int]) -> None:
    share = side.settings.max_deletion_share
    if side.settings.confirm_deletions:
        return
    for scope, count in deletions.items():
        total = _documents_of(side, scope, enough=int(count / share) + 1 if share else count)
        if total >= _ASK_FROM and count > share * total:
            raise ConfirmationRequired(
                f"{count} of the {total} indexed documents of {scope} are there no more.",
                subject=scope,
                remedy="Check that the source is whole. To delete them from the index, confirm deletions.",
            )


def _documents_of(side: StoreSide, scope: str, *, enough: int) -> int:
    """How many documents a scope has, counted no further than ``enough`` of them."""
    total, after = 0, ""
    while total < max(enough, _ASK_FROM):
        page = side.stores.status.of_scope(scope, after=after)
        total += len(page)
        if not page:
            break
        after = page[-1].id
    return total


def compare_units(side: StoreSide, units: Table, documents: Table) -> UnitScan:
    """``documents`` is the plan of ``compare_documents``, ``units`` those of its changed documents, in the same order."""
    plans = PlanWriter(side, "plan")
    read, rewrite = side.writer("units", schemas.TEXT_UNITS), side.writer("unit_rewrites", schemas.TEXT_UNITS)
    failed: dict[str, str] = {}
    restated, remade = 0, False
    cut = _by_document(side, units)
    group = next(cut, None)
    for part in batched(read_plans(side, documents), 64):
        side.stop.check()
        to_read: list[pa.Table] = []
        to_rewrite: list[pa.Table] = []
        for plan in part:
            rows = None
            if plan.kind in ("new", "changed") and group is not None and group[0] == plan.id:
                rows, group = group[1], next(cut, None)
            plan = _plan_units(plan, rows, failed, to_read, to_rewrite)
            plans.add(plan)
            restated += len(plan.core) if plan.reading == "restate" else 0
            remade = remade or (plan.before is not None and (plan.again or plan.reading == "extract"))
        for out, tables in ((read, to_read), (rewrite, to_rewrite)):
            if tables:
                out.add(pa.concat_tables(tables))
    return UnitScan(plan=plans.close(), read=read.close(), rewrite=rewrite.close(), restated=restated, remade=remade, failed=failed)


def _plan_units(
    plan: DocumentPlan,
    rows: pa.Table | None,
    failed: dict[str, str],
    to_read: list[pa.Table],
    to_rewrite: list[pa.Table],
) -> DocumentPlan:
    before, after = plan.before, plan.after
    old = [span.unit_id for span in [*before.units, *before.pending_units]] if before else []
    if plan.kind == "moved":
        return plan
    if after is None:
        return msgspec.structs.replace(plan, removed=list(dict.fromkeys(old)))
    errors = [] if rows is None else [error for error in rows["error"].to_pylist() if error]
    if errors:
        failed[plan.id] = errors[0]
        rows = None
    spans = [] if rows is None else [Span(unit_id=u, start=s, end=e) for u, s, e in _spans(rows)]
    now = [span.unit_id for span in spans]
    held = {span.unit_id for span in before.units} if before else set()
    core = [plan.reading != "" or unit not in held for unit in now]
    anew = [(new and plan.reading != "restate") or plan.again or unit not in held for new, unit in zip(core, now, strict=True)]
    if rows is not None:
        if any(anew):
            to_read.append(rows if all(anew) else rows.filter(pa.array(anew)))
        if plan.rewrite and not all(anew):
            to_rewrite.append(rows.filter(pa.array([not new for new in anew])))
    return msgspec.structs.replace(
        plan,
        after=msgspec.structs.replace(after, units=spans),
        core=[unit for unit, new in zip(now, core, strict=True) if new],
        fields=[unit for unit, new in zip(now, core, strict=True) if not new] if plan.rewrite else [],
        removed=list(dict.fromkeys(unit for unit in old if unit not in set(now))),
    )


def _spans(rows: pa.Table) -> Iterator[tuple[str, int, int]]:
    return zip(rows["id"].to_pylist(), rows["start"].to_pylist(), rows["end"].to_pylist(), strict=True)


def _by_document(side: StoreSide, units: Table) -> Iterator[tuple[str, pa.Table]]:
    """Rows per document, across the borders of files."""
    held: pa.Table | None = None
    for rows in side.tables.batches(units):
        if held is not None:
            rows = pa.concat_tables([held, rows])
        ids = rows["document_id"].to_pylist()
        start = 0
        for index in range(1, len(ids)):
            if ids[index] != ids[start]:
                yield ids[start], rows.slice(start, index - start)
                start = index
        held = rows.slice(start)
    if held is not None and held.num_rows:
        yield held["document_id"][0].as_py(), held
