"""Reading a text unit: entities and relationships."""

from __future__ import annotations

from kgrag.records import EntityStatement, Record, RelationshipStatement


class ExtractionInput(Record, frozen=True, kw_only=True):
    """``entity_types`` are the types asked for; ``language`` the one descriptions are written in (empty: the text's own)."""

    title: str = ""
    text: str
    entity_types: list[str] = []
    language: str = ""


class Extraction(Record, frozen=True, kw_only=True):
    entities: list[EntityStatement] = []
    relationships: list[RelationshipStatement] = []
