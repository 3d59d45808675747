"""The values that travel through kgrag, from a document to an answer.

All are immutable ``msgspec`` structs: cheap to make, and encoded as canonical JSON (sorted keys) by ``encode``.
Ids are 32 hex characters (``kgrag.ids``). Offsets count characters (code points) of a document's parsed text.
"""

from __future__ import annotations

from typing import Literal, TypeVar

import msgspec

Scalar = str | int | float | bool
Metadata = dict[str, Scalar | list[Scalar]]
"""Filter fields of a document: JSON scalars, or lists of them."""

T = TypeVar("T", bound=msgspec.Struct)


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of every record."""


_encoder = msgspec.json.Encoder(order="sorted")
_decoders: dict[type, msgspec.json.Decoder[msgspec.Struct]] = {}


def encode(record: msgspec.Struct) -> bytes:
    """Canonical JSON: equal content is equal bytes."""
    return _encoder.encode(record)


def decode(data: bytes | str, kind: type[T]) -> T:
    """Read back what ``encode`` wrote. Raises ``msgspec.ValidationError`` on another shape."""
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    return decoder.decode(data)  # type: ignore[return-value]


# ---------------------------------------------------------------- documents


class Document(Record, frozen=True, kw_only=True):
    """A parsed document. ``pages[i]`` is the offset at which page i+1 starts (empty where the format has no pages)."""

    id: str
    scope: str
    path: str
    title: str = ""
    text: str
    digest: str
    metadata: Metadata = {}
    pages: list[int] = []
    row: int | None = None
    warnings: list[str] = []


class Span(Record, frozen=True, kw_only=True):
    """Where a text unit stands in its document's parsed text: ``[start, end)``."""

    unit_id: str
    start: int
    end: int


DocumentState = Literal["pending", "processed", "failed", "quarantined"]


class DocumentStatus(Record, frozen=True, kw_only=True):
    """A document as the registry knows it. ``units`` are those of the committed version, in order;
    ``pending_units`` the ids a run in progress is about to write (write-ahead)."""

    id: str
    scope: str
    path: str
    title: str = ""
    digest: str = ""
    metadata: Metadata = {}
    pages: list[int] = []
    row: int | None = None
    fingerprint: str = ""
    """What its units and records were made with: reading, extraction and resolution settings, joined by dots."""
    state: DocumentState = "pending"
    units: list[Span] = []
    pending_units: list[Span] = []
    error: str = ""
    failure_count: int = 0
    retry_count: int = 0
    run_id: str = ""
    updated_at: float = 0.0


class TextUnit(Record, frozen=True, kw_only=True):
    """A passage of one document. ``title`` and ``metadata`` are the document's."""

    id: str
    document_id: str
    title: str = ""
    text: str
    tokens: int
    metadata: Metadata = {}


# ---------------------------------------------------------------- what a model read in one text unit


class EntityStatement(Record, frozen=True, kw_only=True):
    """``confidence`` is on the 1-10 scale of the extraction prompt; ``span`` is verbatim text of the unit."""

    name: str
    type: str = ""
    description: str = ""
    confidence: float = 5.0
    span: str = ""


class RelationshipStatement(Record, frozen=True, kw_only=True):
    """``strength`` is on the 1-10 scale of the extraction prompt."""

    source: str
    target: str
    type: str = ""
    description: str = ""
    strength: float = 5.0
    span: str = ""


class ClaimStatement(Record, frozen=True, kw_only=True):
    """A dated statement about ``subject``; dates are ISO 8601 or empty."""

    subject: str
    object: str = ""
    type: str = ""
    status: str = ""
    description: str = ""
    start_date: str = ""
    end_date: str = ""
    span: str = ""


class UnitRecord(Record, frozen=True, kw_only=True):
    """All that was read in one text unit: the only primary data of the graph."""

    unit_id: str
    document_id: str
    entities: list[EntityStatement] = []
    relationships: list[RelationshipStatement] = []
    claims: list[ClaimStatement] = []
    answers: list[str] = []
    """Keys of the stored answers it was read from."""


StatementKind = Literal["entity", "mention", "relationship", "claim"]


class Statement(Record, frozen=True, kw_only=True):
    """One line of evidence for one derived item, ready to be grouped by ``group`` (the item's id).

    ``mention`` is what a relationship says about each of its ends: that the entity exists (``name``), is cited by
    ``unit_id``, and has the edge ``other_id`` (a relationship id), so an entity's core, lineage, stub and degree
    are all read from its own group. A claim has its subject in ``source_id``, its object in ``target_id`` or, where it
    is a literal, in ``target_name``.
    """

    kind: StatementKind
    group: str
    unit_id: str
    document_id: str
    name: str = ""
    type: str = ""
    description: str = ""
    score: float = 0.0
    source_id: str = ""
    target_id: str = ""
    source_name: str = ""
    target_name: str = ""
    other_id: str = ""
    start_date: str = ""
    end_date: str = ""
    status: str = ""


_packer = msgspec.msgpack.Encoder()
_unpacker = msgspec.msgpack.Decoder(list[Statement])


def pack_statements(statements: list[Statement]) -> bytes:
    """Statements as they are stored and travel, by group and unit: a third of the time of one JSON body each."""
    return _packer.encode(statements)


def unpack_statements(data: bytes) -> list[Statement]:
    """Read back what ``pack_statements`` wrote."""
    return _unpacker.decode(data)


# ---------------------------------------------------------------- derived items (rows of the stores)


class Entity(Record, frozen=True, kw_only=True):
    """``rank`` is the degree: how many document-backed relationships it has."""

    id: str
    name: str
    type: str = ""
    description: str = ""
    rank: int = 0
    confidence: float = 0.0
    text_unit_ids: list[str] = []
    metadata: Metadata = {}


class Relationship(Record, frozen=True, kw_only=True):
    """A directed edge. Its rank (the sum of its ends' degrees) and its ends' display names are joined when it is read;
    ``source_name`` and ``target_name`` are what its own statements call them, for the text it is found by.
    ``weight`` is the exact sum of its statements' strengths."""

    id: str
    source_id: str
    target_id: str
    source_name: str = ""
    target_name: str = ""
    type: str = ""
    description: str = ""
    weight: float = 0.0
    text_unit_ids: list[str] = []
    metadata: Metadata = {}


class Claim(Record, frozen=True, kw_only=True):
    """``object`` is a literal where it did not resolve to an entity (then ``object_id`` is empty)."""

    id: str
    subject_id: str
    object_id: str = ""
    object: str = ""
    type: str = ""
    status: str = ""
    description: str = ""
    start_date: str = ""
    end_date: str = ""
    text_unit_ids: list[str] = []
    metadata: Metadata = {}


class Community(Record, frozen=True, kw_only=True):
    """``level`` counts from the finest (0), ``depth`` from the root (0)."""

    id: str
    level: int
    depth: int = 0
    parent_id: str = ""
    child_ids: list[str] = []
    entity_ids: list[str]

    @property
    def short_id(self) -> str:
        return f"L{self.level}_C{self.id[:8]}"

    @property
    def name(self) -> str:
        return f"Level {self.level} Community {self.id[:8]}"


class Finding(Record, frozen=True, kw_only=True):
    summary: str
    explanation: str = ""


class Report(Record, frozen=True, kw_only=True):
    """A community's report. ``rating`` is the model's 0-10; ``rank`` the sum of member degrees.
    ``input_digest`` tells which context it was written from."""

    id: str
    title: str
    summary: str
    rating: float = 0.0
    rating_explanation: str = ""
    findings: list[Finding] = []
    full_content: str = ""
    rank: int = 0
    level: int = 0
    depth: int = 0
    parent_id: str = ""
    child_ids: list[str] = []
    entity_ids: list[str] = []
    text_unit_ids: list[str] = []
    document_ids: list[str] = []
    input_digest: str = ""
    answers: list[str] = []


# ---------------------------------------------------------------- queries

HitKind = Literal["text_unit", "entity", "relationship", "report", "claim", "summary", "point"]
"""``point`` is a key point that a model read in reports (global search): part of a context, never a stored row."""


class Hit(Record, frozen=True, kw_only=True):
    """A ranked result. ``text`` is what a model would be shown; ``document_id``, ``path``, ``page``, ``row``,
    ``start`` and ``end`` locate a text unit; ``text_unit_ids`` is the lineage of any other kind."""

    kind: HitKind
    id: str
    score: float
    rank: int = 0
    title: str = ""
    text: str = ""
    document_id: str = ""
    path: str = ""
    page: int | None = None
    row: int | None = None
    start: int | None = None
    end: int | None = None
    text_unit_ids: list[str] = []
    metadata: Metadata = {}
    sources: list[str] = []
    """Which retrieval legs found it."""


class Section(Record, frozen=True, kw_only=True):
    """Hits of one kind, best first."""

    kind: HitKind
    hits: list[Hit]


class Usage(Record, frozen=True, kw_only=True):
    """What model calls cost. ``cost`` is in the currency of the user's prices, 0 without prices."""

    calls: int = 0
    stored: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            calls=self.calls + other.calls,
            stored=self.stored + other.stored,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost=self.cost + other.cost,
        )


class Context(Record, frozen=True, kw_only=True):
    """What a strategy found: attributed sections, and how it went."""

    strategy: str
    sections: list[Section] = []
    notes: list[str] = []
    usage: Usage = Usage()

    @property
    def hits(self) -> list[Hit]:
        """The ranked text units."""
        return self.of("text_unit")

    def of(self, kind: HitKind) -> list[Hit]:
        """The ranked items of one kind."""
        return [hit for section in self.sections if section.kind == kind for hit in section.hits]


class Citation(Record, frozen=True, kw_only=True):
    """What ``[number]`` in an answer stands for; ``quote`` is the cited unit's text."""

    number: int
    kind: HitKind
    id: str
    title: str = ""
    path: str = ""
    document_id: str = ""
    text_unit_id: str = ""
    page: int | None = None
    row: int | None = None
    start: int | None = None
    end: int | None = None
    quote: str = ""


AbstainReason = Literal["", "no_context", "marker", "insufficient_context"]


class Answer(Record, frozen=True, kw_only=True):
    """``citations`` are those the text uses; ``context`` is exactly what the model saw."""

    question: str
    text: str
    strategy: str
    citations: list[Citation] = []
    context: Context
    abstained: AbstainReason = ""
    usage: Usage = Usage()
    milliseconds: float = 0.0
