"""Write-ahead, records and the statements that derivation starts from.

The order is what makes a run safe to kill. A document is pending in the registry before anything of it is written; a
removed unit's record stays until all that its removal causes is written; an item that loses a statement because a record
is made anew is noted before the record is replaced. So whatever a dead run left, the next one finds every item it touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kgrag import schemas
from kgrag.graph.resolve import Resolver
from kgrag.graph.statements import statements_of
from kgrag.ingest.plan import DocumentPlan, read_plans
from kgrag.ingest.side import BATCH, StoreSide, batched
from kgrag.ingest.tables import Table
from kgrag.ports import StatusStore
from kgrag.records import DocumentStatus, Metadata, Relationship, UnitRecord, decode

Groups = NDArray[np.void]
"""Sorted group ids as 16 raw bytes each: a million entities, relationships and claims are 16 MB."""

_ID = np.dtype("V16")
UNREAD = pa.schema(
    [
        pa.field("unit_id", pa.string(), nullable=False),
        pa.field("document_id", pa.string(), nullable=False),
        pa.field("error", pa.string(), nullable=False),
        pa.field("read", pa.bool_(), nullable=False),
    ]
)
"""Units that a call failed for; ``read`` where the rest of what was read counts."""

IDS = pa.schema([pa.field("id", pa.string(), nullable=False)])
_IDS = 1 << 16
"""Ids per file of a table of ids."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """``statements`` by shard of their groups, ``gone`` the items nothing states any more. ``ends`` are those of the
    relationships that this run's units state, stated, or state otherwise; ``affected`` are they and every item else whose
    statements changed."""

    statements: Table
    gone: Table
    ends: Table
    affected: Table
    groups: int


def write_ahead(side: StoreSide, plan: Table) -> None:
    """Every document of the plan becomes pending, with the units it had and those it will have, and its file unread."""
    status = side.stores.status
    for part in batched(read_plans(side, plan), 256):
        side.stop.check()
        files: dict[str, dict[str, str]] = {}
        for document in part:
            known = document.after or document.before
            if known is not None and document.kind != "moved":
                files.setdefault(known.scope, {})[known.path] = ""
        with side.stores.transaction():
            status.put([_pending(document, side.run_id) for document in part if document.kind != "moved"])
            for scope, digests in files.items():
                status.put_files(scope, digests)


def _pending(plan: DocumentPlan, run_id: str) -> DocumentStatus:
    """The registry keeps what it knew of the document, so that a run after a dead one decides as that one did."""
    before, after = plan.before, plan.after
    known = before or after
    assert known is not None
    pending = {span.unit_id: span for span in (before.pending_units if before else [])}
    pending |= {span.unit_id: span for span in (after.units if after else [])}
    units = before.units if before else []
    return msgspec.structs.replace(known, state="pending", units=units, pending_units=list(pending.values()), run_id=run_id)


def put_records(side: StoreSide, records: Table, resolver: Resolver, remade: bool) -> Table:
    """Store what was read, with its statements. Returns the units that could not be read (``UNREAD``).
    ``remade`` says that some of these units had a record before."""
    lost = LostItems(side.stores.status)
    unread = side.writer("unread", UNREAD)
    for rows in side.tables.batches(records):
        side.stop.check()
        failed = rows.filter(pc.not_equal(rows["error"], ""))
        read = pc.greater(pc.binary_length(failed["body"]), 0)
        unread.add(pa.table([failed["unit_id"], failed["document_id"], failed["error"], read], schema=UNREAD))
        found = [decode(body, UnitRecord) for body in rows["body"].to_pylist() if body]
        _put(side, found, resolver, lost if remade else None)
    return unread.close()


def restate(side: StoreSide, plan: Table, also: Table | None, resolver: Resolver) -> None:
    """Make the statements of stored records anew: of documents whose names are resolved otherwise now, and of the units in
    ``also``."""
    lost = LostItems(side.stores.status)
    units = (unit for document in read_plans(side, plan) if document.reading == "restate" for unit in document.core)
    for part in batched(chain(units, read_ids(side, also) if also else ())):
        side.stop.check()
        _put(side, list(side.stores.records.get(part).values()), resolver, lost)


def _put(side: StoreSide, records: list[UnitRecord], resolver: Resolver, lost: LostItems | None) -> None:
    stated = [statement for record in records for statement in statements_of(record, resolver)]
    with side.stores.transaction():
        if lost is not None:
            had = side.stores.records.groups_of([record.unit_id for record in records])
            lost.add(had - {statement.group for statement in stated})
        side.stores.records.put(records, stated)


class LostItems:
    """Items that may have lost a statement without a trace in the records, noted in the registry until the commit."""

    def __init__(self, status: StatusStore) -> None:
        self._status = status

    def add(self, items: Iterable[str]) -> None:
        for part in batched(sorted(items), 4096):
            count = self._count()
            self._status.write_value(f"lost/{count}", list(part))
            self._status.write_value("lost", count + 1)

    def pages(self) -> Iterator[list[str]]:
        for page in range(self._count()):
            yield self._status.read_value(f"lost/{page}") or []

    def clear(self) -> None:
        count = self._count()
        if count:
            self._status.write_value("lost", 0)
            for page in range(count):
                self._status.write_value(f"lost/{page}", [])

    def __bool__(self) -> bool:
        return self._count() > 0

    def _count(self) -> int:
        return int(self._status.read_value("lost") or 0)


def export_statements(side: StoreSide, plan: Table, unread: Table | None, also: Table | None, *, everything: bool) -> Evidence:
    """All statements of the items that this run's units and those in ``also`` touch, but for those of removed and unread
    units. ``everything``: of every item there is."""
    out = set(excluded_units(side, plan, unread))
    core, groups = _affected(side, plan, also, everything)
    shards = max(1, -(-len(groups) // side.settings.groups_per_shard))
    table, gone, touched = side.writer("statements", schemas.STATEMENTS), side.writer("gone", IDS, _IDS), _GroupSet()
    subjects = _GroupSet()
    fields = _DocumentFields(side, plan)
    for part, moved in zip(_sharded(groups, shards), _sharded(core, shards), strict=True):
        side.stop.check()
        rows, none, ends, about = _shard(side, _hex(part), out, fields, set(_hex(moved)))
        ends |= _stored_ends(side, none)
        table.shard(rows)
        gone.add(pa.table([none], schema=IDS))
        touched.add(ends)
        subjects.add(about)
    subjects.add_all(core)
    subjects.add_all(touched.sorted())
    return Evidence(
        statements=table.close(),
        gone=gone.close(),
        ends=write_ids(side, "ends", _hex(touched.sorted())),
        affected=write_ids(side, "affected", _hex(subjects.sorted())),
        groups=len(groups),
    )


def _sharded(groups: Groups, shards: int) -> Iterator[Groups]:
    """As ``ids.shard_of`` has it."""
    first = groups.view("u1").reshape(-1, 16)[:, :4].copy().view(">u4").ravel() % shards
    for shard in range(shards):
        yield groups[first == shard]


def _shard(
    side: StoreSide, ids: list[str], out: set[str], fields: _DocumentFields, core: set[str]
) -> tuple[pa.Table, list[str], set[str], set[str]]:
    """Statements of one shard, its items without any, and among ``core`` the ends of its relationships and the subjects
    of its claims."""
    columns: tuple[list[str], list[str], list[str], list[bytes]] = ([], [], [], [])
    items, units, documents, bodies = columns
    ends: set[str] = set()
    about: set[str] = set()
    for group, unit, packed in side.stores.records.evidence(ids):
        stated = _peek(packed)
        first = stated[0]
        if first.kind == "relationship" and group in core:
            ends.add(first.source_id)
            ends.add(first.target_id)
        elif first.kind == "claim" and group in core:
            about.add(first.source_id)
        if unit not in out:
            items.append(group)
            units.append(unit)
            documents.append(first.document_id)
            bodies.append(packed)
    known = set(items)
    rows = pa.table([items, units, documents, fields.of(documents), bodies], schema=schemas.STATEMENTS)
    return rows, [id for id in ids if id not in known], ends, about


class _Stated(msgspec.Struct):
    """What is looked at in a statement that only travels."""

    kind: str
    document_id: str
    source_id: str = ""
    target_id: str = ""


_peek = msgspec.msgpack.Decoder(list[_Stated]).decode


def _stored_ends(side: StoreSide, gone: list[str]) -> set[str]:
    """The ends of relationships about to go, as the store has them."""
    if not gone:
        return set()
    found = [decode(body, Relationship) for body in side.stores.search.get("relationships", gone).values()]
    return {end for edge in found for end in (edge.source_id, edge.target_id)}


def read_ids(side: StoreSide, table: Table, column: str = "id") -> Iterator[str]:
    """The ids of a table, one by one."""
    for rows in side.tables.batches(table, [column]):
        yield from rows[column].to_pylist()


def write_ids(side: StoreSide, name: str, ids: Iterable[str]) -> Table:
    """A table of these ids, in their order."""
    out = side.writer(name, IDS, _IDS)
    for part in batched(ids, _IDS):
        out.add(pa.table([list(part)], schema=IDS))
    return out.close()


def excluded_units(side: StoreSide, plan: Table, unread: Table | None) -> Iterator[str]:
    for document in read_plans(side, plan):
        yield from document.removed
    if unread is not None:
        yield from without_record(side, unread)


def without_record(side: StoreSide, unread: Table) -> Iterator[str]:
    """Units of which nothing could be read."""
    for rows in side.tables.batches(unread):
        yield from rows.filter(pc.invert(rows["read"]))["unit_id"].to_pylist()


def _affected(side: StoreSide, plan: Table, also: Table | None, everything: bool) -> tuple[Groups, Groups]:
    """Items whose statements changed, and all to derive: those and the ones of which only a document's fields changed."""
    core, groups = _GroupSet(), _GroupSet()
    for page in LostItems(side.stores.status).pages():
        core.add(page)
    units = (unit for document in read_plans(side, plan) for unit in (*document.core, *document.removed))
    _add_groups(side, core, chain(units, read_ids(side, also) if also else ()))
    groups.add_all(core.sorted())
    _add_groups(side, groups, (unit for document in read_plans(side, plan) for unit in document.fields))
    if everything:
        _add_groups(side, groups, _all_units(side))
    return core.sorted(), groups.sorted()


def _add_groups(side: StoreSide, into: _GroupSet, units: Iterable[str]) -> None:
    for part in batched(units):
        side.stop.check()
        into.add(side.stores.records.groups_of(part))


def _all_units(side: StoreSide) -> Iterator[str]:
    after = ""
    while records := side.stores.records.scan(after=after, limit=BATCH):
        yield from (record.unit_id for record in records)
        after = records[-1].unit_id


class _GroupSet:
    """A set of ids at 16 bytes each."""

    def __init__(self) -> None:
        self._held: list[Groups] = []
        self._size = self._unique = 0

    def add(self, ids: Iterable[str]) -> None:
        self.add_all(np.frombuffer(bytes.fromhex("".join(ids)), _ID))

    def add_all(self, ids: Groups) -> None:
        if len(ids):
            self._held.append(ids)
            self._size += len(ids)
            if self._size > 2 * self._unique + (1 << 20):
                self.sorted()

    def sorted(self) -> Groups:
        joined = np.concatenate(self._held) if self._held else np.zeros(0, _ID)
        words = joined.view(">u8").reshape(-1, 2)
        order = np.lexsort((words[:, 1].astype("u8"), words[:, 0].astype("u8")))
        words = words[order]
        new = np.ones(len(words), dtype=bool)
        new[1:] = (words[1:] != words[:-1]).any(axis=1)
        unique = np.ascontiguousarray(words[new]).view(_ID).ravel()
        self._held, self._size, self._unique = [unique], len(unique), len(unique)
        return unique


def _hex(groups: Groups) -> list[str]:
    text = groups.tobytes().hex()
    return [text[start : start + 32] for start in range(0, len(text), 32)]


class _DocumentFields:
    """Each document's filter fields as JSON: this run's for the documents of its plan, else the registry's."""

    def __init__(self, side: StoreSide, plan: Table) -> None:
        self._status = side.stores.status
        self._known = {document.id: _json(document.after.metadata) for document in read_plans(side, plan) if document.after}

    def of(self, documents: list[str]) -> list[str]:
        known = self._known
        missing = list(dict.fromkeys(id for id in documents if id not in known))
        for part in batched(missing):
            found = self._status.get(part)
            for id in part:
                known[id] = _json(found[id].metadata) if id in found else ""
        return [known[id] for id in documents]


def _json(fields: Metadata) -> str:
    return msgspec.json.encode(fields, order="sorted").decode() if fields else ""
