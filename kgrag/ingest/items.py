"""Rows, vertices and edges into the stores, in an order that never shows a reader an id that leads nowhere:
text units, entities, relationships, claims; what goes, goes the other way round."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pyarrow as pa

from kgrag import schemas
from kgrag.index.texts import passage_of_body
from kgrag.index.write import store_rows
from kgrag.ingest.evidence import read_ids
from kgrag.ingest.plan import read_plans
from kgrag.ingest.side import StoreSide, batched
from kgrag.ingest.tables import Table
from kgrag.ports import Collection, Edge, Row, Vertex
from kgrag.records import TextUnit, decode
from kgrag.stage import CallStage

_ORDER: tuple[Collection, ...] = ("text_units", "entities", "relationships", "claims", "reports")


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """``written`` rows that differed from the stored ones, of ``rows``."""

    rows: int
    written: int


def mark_passages(side: StoreSide, rows: Table) -> Table:
    """Those rows whose vector the store does not hold, with the text to embed (``PASSAGES``), one collection after another."""
    out = side.writer(f"{rows.name}_passages", schemas.PASSAGES)
    for collection in _ORDER:
        fresh = not _holds(side, collection)
        for part in side.tables.batches(rows, ["id", "body", "vector_digest"], collection=collection):
            side.stop.check()
            found = list(zip(*(part[n].to_pylist() for n in ("id", "body", "vector_digest")), strict=True))
            held = {} if fresh else side.stores.search.vector_digests(collection, [id for id, _, _ in found])
            new = [(id, passage_of_body(collection, body)) for id, body, name in found if name and held.get(id) != name]
            columns = [[collection] * len(new), [id for id, _ in new], [text for _, text in new]]
            out.add(pa.table(columns, schema=schemas.PASSAGES))
    return out.close()


def any_needed(side: StoreSide, table: Table, stage: CallStage) -> bool:
    """Whether any row of the table needs an answer of this stage."""
    for rows in side.tables.batches(table):
        side.stop.check()
        needed = stage.needed(rows)
        if needed is None or len(needed):
            return True
    return False


def stored_units(side: StoreSide) -> Table:
    """Every stored text unit, for rows to be made anew (another embedding, another analysis)."""
    out = side.writer("stored_units", schemas.TEXT_UNITS)
    after = ""
    while page := side.stores.search.scan("text_units", after=after):
        side.stop.check()
        after = page[-1][0]
        units = [decode(body, TextUnit) for _, body in page]
        columns = [
            [unit.id for unit in units],
            [unit.document_id for unit in units],
            [unit.title for unit in units],
            [unit.text for unit in units],
            [unit.tokens for unit in units],
            [0] * len(units),
            [0] * len(units),
            [msgspec.json.encode(unit.metadata).decode() for unit in units],
            [""] * len(units),
        ]
        out.add(pa.table(columns, schema=schemas.TEXT_UNITS))
    return out.close()


def write_rows(side: StoreSide, rows: Table, vectors: Table | None, *, anew: bool = False) -> Written:
    """Write the rows that differ from what the stores hold (``anew``: all), and the vertices and edges of the graph with
    theirs."""
    written = 0
    made = VectorReader(side, vectors)
    for collection in _ORDER:
        fresh = anew or not _holds(side, collection)
        for part in side.tables.batches(rows, collection=collection):
            side.stop.check()
            written += _write(side, collection, store_rows(part, made.of(part["id"].to_pylist())), fresh)
    return Written(rows=rows.rows, written=written)


def _write(side: StoreSide, collection: Collection, rows: list[Row], fresh: bool) -> int:
    if not fresh:
        ids = [row.id for row in rows]
        bodies = side.stores.search.get(collection, ids)
        named = side.stores.search.vector_digests(collection, ids)
        rows = [row for row in rows if bodies.get(row.id) != row.body or named.get(row.id, "") != row.vector_digest]
    with side.stores.transaction():
        if rows:
            side.stores.search.upsert(collection, rows)
        if rows and collection == "entities":
            side.stores.graph.upsert([_vertex(row.body) for row in rows], [])
        if rows and collection == "relationships":
            side.stores.graph.upsert([], [_edge(row.body) for row in rows])
    return len(rows)


def delete_items(side: StoreSide, gone: Table) -> int:
    """Delete items nothing states any more from rows and graph."""
    ids = list(read_ids(side, gone))
    for collection in ("claims", "relationships", "entities"):
        for part in batched(ids):
            side.stop.check()
            with side.stores.transaction():
                if collection == "relationships":
                    side.stores.graph.delete([], part)
                if collection == "entities":
                    side.stores.graph.delete(part, [])
                side.stores.search.delete(collection, part)
    return len(ids)


def delete_units(side: StoreSide, plan: Table) -> int:
    """Delete the rows of removed text units, once nothing cites them."""
    count = 0
    for part in batched(unit for document in read_plans(side, plan) for unit in document.removed):
        side.stop.check()
        side.stores.search.delete("text_units", part)
        count += len(part)
    return count


class VectorReader:
    """Vectors read along with the rows they belong to: those that have one here come in the order of the rows."""

    def __init__(self, side: StoreSide, table: Table | None) -> None:
        self._coming = _vectors(side, table) if table is not None else iter(())
        self._next = next(self._coming, None)

    def of(self, ids: list[str]) -> dict[str, bytes]:
        """Vectors of those ids that were embedded now; empty where embedding failed."""
        found: dict[str, bytes] = {}
        for id in ids:
            if self._next is not None and self._next[0] == id:
                found[id] = self._next[1]
                self._next = next(self._coming, None)
        return found


def _vectors(side: StoreSide, table: Table) -> Iterator[tuple[str, bytes]]:
    for part in side.tables.batches(table, ["id", "vector"]):
        yield from zip(part["id"].to_pylist(), part["vector"].to_pylist(), strict=True)


_vertex = msgspec.json.Decoder(Vertex).decode
_edge = msgspec.json.Decoder(Edge).decode


def _holds(side: StoreSide, collection: Collection) -> bool:
    return side.stores.search.count(collection) > 0
