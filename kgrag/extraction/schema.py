"""The entity and relationship types a user declared, and what happens to items of others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeVar

import msgspec

from kgrag.ids import entity_key, schema_key
from kgrag.records import EntityStatement, RelationshipStatement

SchemaMode = Literal["off", "align", "strict"]


class ExtractionSchema:
    """Declared types and allowed patterns, compared by ``schema_key`` and nothing looser.

    ``align`` writes a label as it was declared, once relationship types are declared; ``strict`` also drops what is off
    schema. Both look at one unit alone, in no order."""

    def __init__(
        self,
        entity_types: Iterable[str],
        relationship_types: Iterable[str] = (),
        patterns: Iterable[tuple[str, str, str]] = (),
        mode: SchemaMode = "align",
    ) -> None:
        self.entities = {schema_key(label): label for label in entity_types}
        self.relationships = {schema_key(label): label for label in relationship_types}
        self.patterns: dict[str, set[tuple[str, str]]] = {}
        for source, label, target in patterns:
            self.patterns.setdefault(schema_key(label), set()).add((schema_key(source), schema_key(target)))
        self.strict = mode == "strict"
        self.applies = self.strict or (mode == "align" and bool(self.relationships))

    def declared(
        self, entities: Sequence[EntityStatement], relationships: Sequence[RelationshipStatement]
    ) -> tuple[list[EntityStatement], list[RelationshipStatement]]:
        """The items with their labels as declared; other labels stay as they are."""
        if not self.applies:
            return list(entities), list(relationships)
        return (
            [_labelled(e, self.entities.get(schema_key(e.type))) for e in entities],
            [_labelled(r, self.relationships.get(schema_key(r.type))) for r in relationships],
        )

    def allows_entity(self, entity: EntityStatement) -> bool:
        """Whether the entity may stay: in ``strict`` its type is declared, where any is."""
        return not self.strict or not self.entities or schema_key(entity.type) in self.entities

    def allowed_relationships(
        self, entities: Sequence[EntityStatement], relationships: Sequence[RelationshipStatement]
    ) -> list[RelationshipStatement]:
        """In ``strict`` those of a declared type whose pattern, between two ends of declared types in this unit, is allowed."""
        if not self.strict:
            return list(relationships)
        types: dict[str, set[str]] = {}
        for entity in entities:
            types.setdefault(entity_key(entity.name), set()).add(schema_key(entity.type))
        return [r for r in relationships if self._allows(r, types)]

    def _allows(self, relationship: RelationshipStatement, types: dict[str, set[str]]) -> bool:
        label = schema_key(relationship.type)
        if self.relationships and label not in self.relationships:
            return False
        allowed = self.patterns.get(label)
        if not allowed:
            return True
        sources, targets = (
            types.get(entity_key(end), set()) & self.entities.keys() for end in (relationship.source, relationship.target)
        )
        return not sources or not targets or any((s, t) in allowed for s in sources for t in targets)


S = TypeVar("S", EntityStatement, RelationshipStatement)


def _labelled(item: S, label: str | None) -> S:
    return item if label is None or label == item.type else msgspec.structs.replace(item, type=label)
