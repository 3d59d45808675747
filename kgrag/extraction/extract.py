"""A text unit to its record: extraction, gleaning, claims, and the checks that what was read is there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeVar

import msgspec
import pyarrow as pa
from pydantic import Field

from kgrag import schemas
from kgrag.engine import Engine
from kgrag.errors import ItemError
from kgrag.extraction.ground import Grounding, without_rejected
from kgrag.extraction.schema import ExtractionSchema, SchemaMode
from kgrag.ids import digest, entity_key, schema_key
from kgrag.records import ClaimStatement, EntityStatement, RelationshipStatement, UnitRecord, Usage, encode
from kgrag.section import Section
from kgrag.stage import CallStage, RowError
from kgrag.tasks.extraction import CLAIMS, EXTRACT, GLEAN, ClaimsInput, Extraction, ExtractionInput, GleanInput

DEFAULT_ENTITY_TYPES = [
    "Person",
    "Organization",
    "Location",
    "Event",
    "Date",
    "Product",
    "Technology",
    "Concept",
    "Law",
    "Dataset",
    "Method",
]
"""The default types of graphrag-sdk."""


class ExtractionSettings(Section):
    """What is read in a text unit, and what of it is kept."""

    entity_types: list[str] = DEFAULT_ENTITY_TYPES
    """Types asked for. From graphrag-sdk."""
    relationship_types: list[str] = []
    """Relationship types asked for; empty leaves them to the model."""
    relationship_patterns: list[tuple[str, str, str]] = []
    """Allowed (source type, relationship type, target type); a type without a pattern may join anything."""
    schema_mode: SchemaMode = "align"
    """What the declared types do: `off` only asks for them, `align` also writes labels as declared (once relationship types
    are declared), `strict` also drops what is of no declared type."""
    language: str = ""
    """Language descriptions are written in; empty: that of the text."""
    grounding: bool = True
    """Whether items are dropped whose name and quote the text does not have. From the reference."""
    entity_confidence_threshold: float = Field(default=0.0, ge=0, le=10)
    """Confidence (1-10) below which an entity is dropped. The reference names no default."""
    gleaning: bool = True
    """Whether a unit is read again for what was missed. From the July 2026 release of the reference."""
    gleaning_max_rounds: int = Field(default=3, ge=1)
    """Most times a unit is read again; it stops sooner when nothing new comes. From the reference."""
    claims: bool = False
    """Whether claims are read too. From the reference."""
    claims_about: str = ""
    """Which claims are wanted, in the user's words; empty: any."""


class ExtractStage(CallStage):
    """Text units to records. Where gleaning or claims failed on a unit's own account, the row has both a record without
    them and the error."""

    name: ClassVar[str] = "extract"
    reads: ClassVar[pa.Schema] = schemas.TEXT_UNITS
    writes: ClassVar[pa.Schema] = schemas.RECORDS
    role: ClassVar[str] = EXTRACT.role
    tasks = (EXTRACT, GLEAN, CLAIMS)

    def __init__(self, settings: ExtractionSettings | None = None) -> None:
        self.settings = settings or ExtractionSettings()
        s = self.settings
        self._schema = ExtractionSchema(s.entity_types, s.relationship_types, s.relationship_patterns, s.schema_mode)

    def key(self) -> str:
        return digest(self.settings.model_dump_json())

    async def row(self, row: dict[str, Any], engine: Engine) -> dict[str, Any]:
        if row["error"]:
            return self._row(row, b"", Usage(), row["error"])
        reading = _Reading(row["title"], row["text"], self.settings, self._schema)
        error = ""
        await reading.extract(engine)
        try:
            if self.settings.gleaning:
                await reading.glean(engine)
        except ItemError as failure:
            error = _error("glean", failure)
        reading.check()
        try:
            if self.settings.claims and reading.entities:
                await reading.claim(engine)
        except ItemError as failure:
            error = _error("claims", failure)
        record = reading.record(row["id"], row["document_id"])
        return self._row(row, encode(record), reading.usage, error)

    def failed(self, row: dict[str, Any], error: RowError) -> dict[str, Any]:
        return self._row(row, b"", Usage(), msgspec.json.encode(error).decode())

    def _row(self, row: dict[str, Any], body: bytes, usage: Usage, error: str) -> dict[str, Any]:
        return {
            "unit_id": row["id"],
            "document_id": row["document_id"],
            "metadata": row["metadata"],
            "body": body,
            "usage": encode(usage).decode() if usage.calls or usage.stored else "",
            "error": error,
        }


class _Reading:
    """What has been read in one unit so far."""

    def __init__(self, title: str, text: str, settings: ExtractionSettings, schema: ExtractionSchema) -> None:
        self.entities: list[EntityStatement] = []
        self.relationships: list[RelationshipStatement] = []
        self.claims: list[ClaimStatement] = []
        self.usage = Usage()
        self._answers: list[str] = []
        self._settings, self._schema = settings, schema
        self._input: dict[str, Any] = {
            "title": title,
            "text": text,
            "entity_types": settings.entity_types,
            "relationship_types": settings.relationship_types,
            "language": settings.language,
        }

    async def extract(self, engine: Engine) -> None:
        if not self._input["text"].strip():
            return
        outcome = await engine.ask(EXTRACT, ExtractionInput(**self._input))
        self._paid(outcome.usage, outcome.answers)
        self._add(outcome.value)

    async def glean(self, engine: Engine) -> None:
        """Read again, with the items so far, until an answer adds nothing new."""
        if not self._input["text"].strip():
            return
        for _ in range(self._settings.gleaning_max_rounds):
            known = GleanInput(**self._input, entities=self.entities, relationships=self.relationships)
            outcome = await engine.ask(GLEAN, known)
            self._paid(outcome.usage, outcome.answers)
            if not self._add(outcome.value):
                break

    async def claim(self, engine: Engine) -> None:
        names = sorted({e.name for e in self.entities})
        s = self._settings
        outcome = await engine.ask(
            CLAIMS,
            ClaimsInput(
                title=self._input["title"], text=self._input["text"], entities=names, about=s.claims_about, language=s.language
            ),
        )
        self._paid(outcome.usage, outcome.answers)
        self.claims = outcome.value

    def check(self) -> None:
        """Drop what the text does not bear out, what is below the confidence asked for, and what is off schema."""
        text = Grounding(self._input["text"])
        least, grounding = self._settings.entity_confidence_threshold, self._settings.grounding
        self.entities, self.relationships = without_rejected(
            self.entities,
            self.relationships,
            lambda e: e.confidence >= least and self._schema.allows_entity(e) and (not grounding or text.entity(e)),
        )
        if grounding:
            self.relationships = [r for r in self.relationships if text.relationship(r)]
        self.relationships = self._schema.allowed_relationships(self.entities, self.relationships)

    def record(self, unit_id: str, document_id: str) -> UnitRecord:
        """In one order whatever order a model lists things in, each once."""
        return UnitRecord(
            unit_id=unit_id,
            document_id=document_id,
            entities=_canonical(self.entities),
            relationships=_canonical(self.relationships),
            claims=_canonical(self.claims),
            answers=sorted(set(self._answers)),
        )

    def _add(self, found: Extraction) -> bool:
        """Take in an answer: an item of a known name (or ends and type) replaces it. Whether anything was new."""
        entities, relationships = self._schema.declared(found.entities, found.relationships)
        if not self.entities and not self.relationships:
            self.entities, self.relationships = entities, relationships
            return bool(entities or relationships)
        self.entities, new_entity = _replaced(self.entities, entities, lambda e: entity_key(e.name))
        self.relationships, new_edge = _replaced(
            self.relationships, relationships, lambda r: (entity_key(r.source), entity_key(r.target), schema_key(r.type))
        )
        return new_entity or new_edge

    def _paid(self, usage: Usage, answers: Iterable[str]) -> None:
        self.usage += usage
        self._answers += answers


S = TypeVar("S", bound=msgspec.Struct)


def _replaced(known: list[S], found: list[S], key: Callable[[S], object]) -> tuple[list[S], bool]:
    """Known items with the found ones in place of those of the same key, and whether a key was new."""
    if not found:
        return known, False
    keys = {key(item) for item in found}
    before = {key(item) for item in known}
    return [item for item in known if key(item) not in keys] + found, not keys <= before


def _canonical(items: list[S]) -> list[S]:
    return sorted(set(items), key=msgspec.structs.astuple)


def _error(step: str, failure: ItemError) -> str:
    return msgspec.json.encode(RowError.of(step, failure)).decode()
