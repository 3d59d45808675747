"""Similar spellings that are taken for one name (``resolution.fuzzy``): found over the whole corpus, so that what a change
joins or parts in documents it does not touch is stated anew there too."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kgrag.graph.aliases import fuzzy_aliases, key_types
from kgrag.graph.resolve import ResolutionSettings, Resolver
from kgrag.ingest.evidence import excluded_units, read_ids, write_ids
from kgrag.ingest.side import BATCH, StoreSide
from kgrag.ingest.tables import Table
from kgrag.records import UnitRecord, decode


class Aliases(msgspec.Struct, frozen=True, kw_only=True):
    """``joined`` maps group keys to the one that stands for them; ``units`` are stored ones that say a name whose key moved."""

    joined: dict[str, str]
    units: Table


def find_aliases(side: StoreSide, settings: ResolutionSettings, plan: Table, records: Table) -> Aliases:
    """What is joined once ``records`` are stored and the removed units of the plan are gone."""
    bare = Resolver(settings, {})
    before = stored_aliases(side)
    new = set(read_ids(side, records, "unit_id"))
    out = new | set(excluded_units(side, plan, None))
    joined: dict[str, str] = {}
    if settings.fuzzy:
        types = key_types(_all(side, records, out), bare)
        joined = fuzzy_aliases(types, settings.similarity_threshold)
    moved = {key for key in before.keys() | joined.keys() if before.get(key, key) != joined.get(key, key)}
    renamed = (record.unit_id for record in _stored(side, out) if not moved.isdisjoint(map(bare.key, _names(record))))
    return Aliases(joined=joined, units=write_ids(side, "realiased", renamed if moved else ()))


def stored_aliases(side: StoreSide) -> dict[str, str]:
    """What the statements in the stores were made with."""
    return side.stores.status.read_value("aliases") or {}


def _all(side: StoreSide, records: Table, out: set[str]) -> Iterator[UnitRecord]:
    yield from _stored(side, out)
    for rows in side.tables.batches(records, ["body"]):
        yield from (decode(body, UnitRecord) for body in rows["body"].to_pylist() if body)


def _stored(side: StoreSide, out: set[str]) -> Iterator[UnitRecord]:
    after = ""
    while page := side.stores.records.scan(after=after, limit=BATCH):
        side.stop.check()
        after = page[-1].unit_id
        yield from (record for record in page if record.unit_id not in out)


def _names(record: UnitRecord) -> Iterator[str]:
    yield from (entity.name for entity in record.entities)
    for relationship in record.relationships:
        yield relationship.source
        yield relationship.target
    for claim in record.claims:
        yield claim.subject
        yield claim.object
