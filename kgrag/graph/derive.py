"""What the statements about an item add up to.

``derive`` is a pure function of the set of a group's statements: neither order nor repetition nor the batches they come in
matter. What must choose counts votes, documents before seeds, and breaks ties by the smallest value (unified-kg-rag §4.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum

import msgspec
import pyarrow as pa

from kgrag import schemas
from kgrag.filters import canonical
from kgrag.ids import digest, is_seed, schema_key
from kgrag.records import Claim, Entity, Metadata, Relationship, Scalar, Statement, encode, unpack_statements
from kgrag.stage import TableStage

Item = Entity | Relationship | Claim


def derive(statements: Iterable[Statement], documents: Mapping[str, Metadata]) -> Item:
    """The entity, relationship or claim that one group's statements make.

    ``documents`` gives the filter fields of each cited document; one that is missing there has none.
    Raises ValueError for an empty group."""
    unique = list(set(statements))
    if not unique:
        raise ValueError("A group without statements has no item.")
    kind = unique[0].kind
    if kind == "relationship":
        return _relationship(unique, documents)
    if kind == "claim":
        return _claim(unique, documents)
    return _entity(unique, documents)


def _entity(statements: list[Statement], documents: Mapping[str, Metadata]) -> Entity:
    stated = [s for s in statements if s.kind == "entity"]
    scores = [s.score for s in stated if not is_seed(s.unit_id)] or [s.score for s in stated]
    return Entity(
        id=statements[0].group,
        name=_vote_by_unit((s.name, s.unit_id) for s in statements),
        type=_vote([(s.type, s.unit_id) for s in stated if s.type], fold=schema_key),
        description=_lines(stated),
        rank=len({s.other_id for s in statements if s.other_id and not is_seed(s.unit_id)}),
        confidence=max(scores, default=0.0),
        text_unit_ids=sorted({s.unit_id for s in statements}),
        metadata=_union(statements, documents),
    )


def _relationship(statements: list[Statement], documents: Mapping[str, Metadata]) -> Relationship:
    first = statements[0]
    return Relationship(
        id=first.group,
        source_id=first.source_id,
        target_id=first.target_id,
        source_name=_vote_by_unit((s.source_name, s.unit_id) for s in statements),
        target_name=_vote_by_unit((s.target_name, s.unit_id) for s in statements),
        type=_vote([(s.type, s.unit_id) for s in statements if s.type]),
        description=_lines(statements),
        weight=fsum([s.score for s in statements]),
        text_unit_ids=sorted({s.unit_id for s in statements}),
        metadata=_union(statements, documents),
    )


def _claim(statements: list[Statement], documents: Mapping[str, Metadata]) -> Claim:
    first = statements[0]
    return Claim(
        id=first.group,
        subject_id=first.source_id,
        object_id=first.target_id,
        object=_vote_by_unit((s.target_name, s.unit_id) for s in statements),
        type=_vote([(s.type, s.unit_id) for s in statements if s.type]),
        status=_vote([(s.status, s.unit_id) for s in statements if s.status]),
        description=_lines(statements),
        start_date=first.start_date,
        end_date=first.end_date,
        text_unit_ids=sorted({s.unit_id for s in statements}),
        metadata=_union(statements, documents),
    )


def _vote_by_unit(ballots: Iterable[tuple[str, str]]) -> str:
    """As ``_vote``, one vote per unit and value."""
    return _vote(list(set(ballots)))


def _vote(ballots: list[tuple[str, str]], fold: Callable[[str], str] | None = None) -> str:
    """The value with most votes from documents, then from seeds, then the smallest. A ballot is (value, unit id).
    With ``fold``, spellings of one folded value first vote together, then among themselves."""
    values = {value for value, _ in ballots}
    if len(values) < 2:
        return values.pop() if values else ""
    if fold is not None:
        winner = _vote([(fold(value), unit) for value, unit in ballots])
        return _vote([ballot for ballot in ballots if fold(ballot[0]) == winner])
    count = dict.fromkeys(values, 0)
    seeds = dict(count)
    for value, unit in ballots:
        (seeds if is_seed(unit) else count)[value] += 1
    return min(values, key=lambda value: (-count[value], -seeds[value], value))


def _lines(statements: list[Statement]) -> str:
    """Distinct descriptions, documents before seeds, in the order of their hashes: adding one moves no other."""
    lines = {s.description for s in statements if s.description}
    if len(lines) < 2:
        return lines.pop() if lines else ""
    told = {s.description for s in statements if not is_seed(s.unit_id)}
    return "\n".join(sorted(lines, key=lambda line: (line not in told, digest(line))))


def _union(statements: list[Statement], documents: Mapping[str, Metadata]) -> Metadata:
    """Per key every value any cited document has, sorted (truth values, then numbers, then text)."""
    merged: dict[str, dict[str, Scalar]] = {}
    for document in {s.document_id for s in statements}:
        for key, value in documents.get(document, {}).items():
            values = merged.setdefault(key, {})
            for scalar in value if isinstance(value, list) else (value,):
                name = canonical(scalar)
                values[name] = min(values.get(name, scalar), scalar, key=repr)
    return {key: sorted(merged[key].values(), key=_order) for key in sorted(merged)}


def _order(value: Scalar) -> tuple[int, float, str]:
    if isinstance(value, str):
        return (2, 0.0, value)
    return (0 if isinstance(value, bool) else 1, float(value), "")


class DeriveStage(TableStage):
    """A shard's statements to its items, in id order."""

    name = "derive"
    reads = schemas.STATEMENTS
    writes = schemas.ITEMS
    shard_key = "group"

    def table(self, rows: pa.Table) -> pa.Table:
        groups: dict[str, list[bytes]] = {}
        fields: dict[str, str] = {}
        columns = (rows[c].to_pylist() for c in ("group", "body", "document_id", "metadata"))
        for group, body, document, metadata in zip(*columns, strict=True):
            groups.setdefault(group, []).append(body)
            fields[document] = metadata
        documents = {document: _decode_metadata(metadata) for document, metadata in fields.items() if metadata}
        items, cited = [], []
        for group in sorted(groups):
            statements = [statement for body in set(groups[group]) for statement in unpack_statements(body)]
            items.append(derive(statements, documents))
            cited.append(sorted({s.document_id for s in statements}))
        return item_table(items, cited)


def item_table(items: Sequence[Item], document_ids: Sequence[list[str]]) -> pa.Table:
    """Rows of ``schemas.ITEMS``; ``document_ids`` are those each item cites."""
    edges = [item if isinstance(item, Relationship) else None for item in items]
    return pa.table(
        [
            [_KINDS[type(item)] for item in items],
            [item.id for item in items],
            [encode(item) for item in items],
            [edge.source_id if edge else "" for edge in edges],
            [edge.target_id if edge else "" for edge in edges],
            [edge.weight if edge else 0.0 for edge in edges],
            [item.rank if isinstance(item, Entity) else 0 for item in items],
            list(document_ids),
            [""] * len(items),
            [""] * len(items),
        ],
        schema=schemas.ITEMS,
    )


_KINDS = {Entity: "entity", Relationship: "relationship", Claim: "claim"}
_decode_metadata = msgspec.json.Decoder(Metadata).decode
