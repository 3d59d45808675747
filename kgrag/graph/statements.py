"""A unit's record as statements, each under the id of the item it is about."""

from __future__ import annotations

from kgrag.graph.resolve import Resolver
from kgrag.ids import claim_id, entity_key, relationship_id
from kgrag.records import Statement, UnitRecord


def statements_of(record: UnitRecord, resolver: Resolver) -> list[Statement]:
    """All that a unit states. Dropped: nameless entities, relationships without two different ends, and claims whose
    subject the unit's own entities do not hold. A pure function of the record and the resolver's settings."""
    types = resolver.types(record)
    found = _entities(record, resolver)
    own = [s.name for s in found]
    _relationships(record, resolver, types, found)
    if record.claims:
        _claims(record, resolver, {resolver.key(n): _bare(n, resolver, types) for n in own}, found)
    return found


def _bare(name: str, resolver: Resolver, types: dict[str, str]) -> str:
    """The entity a name without a type means here."""
    return resolver.entity(name, types.get(resolver.key(name), "") if types else "")


def _entities(record: UnitRecord, resolver: Resolver) -> list[Statement]:
    out = []
    for entity in record.entities:
        name = " ".join(entity.name.split())
        group = resolver.entity(name, entity.type)
        if group:
            out.append(
                Statement(
                    kind="entity",
                    group=group,
                    unit_id=record.unit_id,
                    document_id=record.document_id,
                    name=name,
                    type=" ".join(entity.type.split()),
                    description=" ".join(entity.description.split()),
                    score=entity.confidence,
                )
            )
    return out


def _relationships(record: UnitRecord, resolver: Resolver, types: dict[str, str], out: list[Statement]) -> None:
    unit, document = record.unit_id, record.document_id
    for stated in record.relationships:
        source_name, target_name = " ".join(stated.source.split()), " ".join(stated.target.split())
        source = _bare(source_name, resolver, types)
        target = _bare(target_name, resolver, types)
        if not source or not target or source == target:
            continue
        edge = relationship_id(source, target, stated.type)
        out.append(
            Statement(
                kind="relationship",
                group=edge,
                unit_id=unit,
                document_id=document,
                type=" ".join(stated.type.split()),
                description=" ".join(stated.description.split()),
                score=stated.strength,
                source_id=source,
                target_id=target,
                source_name=source_name,
                target_name=target_name,
            )
        )
        for end, name in ((source, source_name), (target, target_name)):
            out.append(Statement(kind="mention", group=end, unit_id=unit, document_id=document, name=name, other_id=edge))


def _claims(record: UnitRecord, resolver: Resolver, own: dict[str, str], out: list[Statement]) -> None:
    for claim in record.claims:
        subject = own.get(resolver.key(claim.subject), "")
        if not subject:
            continue
        literal = " ".join(claim.object.split())
        target = own.get(resolver.key(literal), "") if literal else ""
        object_key = target or (entity_key(literal) if literal else "")
        out.append(
            Statement(
                kind="claim",
                group=claim_id(subject, object_key, claim.type, claim.start_date, claim.end_date),
                unit_id=record.unit_id,
                document_id=record.document_id,
                type=" ".join(claim.type.split()),
                description=" ".join(claim.description.split()),
                source_id=subject,
                target_id=target,
                target_name="" if target else literal,
                start_date=claim.start_date,
                end_date=claim.end_date,
                status=" ".join(claim.status.split()),
            )
        )
