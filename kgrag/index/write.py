"""Derived items as rows of the search store: body, analysed text, filter fields and the name of their vector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import msgspec
import numpy as np
import pyarrow as pa

from kgrag import schemas
from kgrag.index.texts import Found, about_token, passage_of, text_of, vector_digest
from kgrag.ports import Collection, Row
from kgrag.records import Claim, Entity, Metadata, Relationship, Report, TextUnit, decode, encode
from kgrag.stage import MapStage
from kgrag.text import Analyzer

_metadata = msgspec.json.Decoder(Metadata).decode
_json = msgspec.json.Encoder(order="sorted").encode

Made = tuple[Collection, Found, bytes]
"""A row's collection, its record, and the record's canonical bytes."""


class RowStage(MapStage):
    """Items to ``schemas.ROWS``. ``vectors`` names the collections that get vectors, ``embedding`` the embedder's identity
    (empty: none does)."""

    writes: ClassVar[pa.Schema] = schemas.ROWS
    name: ClassVar[str] = "rows"
    reads: ClassVar[pa.Schema] = schemas.ITEMS

    def __init__(self, language: str, embedding: str, vectors: frozenset[Collection]) -> None:
        self.language, self.embedding, self.vectors = language, embedding, vectors
        self._analyzer: Analyzer | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.language, self.embedding, self.vectors))

    def key(self) -> str:
        return msgspec.json.encode([self.analyzer.identity, self.embedding, sorted(self.vectors)]).decode()

    @property
    def analyzer(self) -> Analyzer:
        if self._analyzer is None:
            self._analyzer = Analyzer(self.language)
        return self._analyzer

    def made(self, rows: pa.Table) -> Iterator[Made]:
        """The records of a batch."""
        kinds: Mapping[str, tuple[Collection, type[Found]]] = {
            "entity": ("entities", Entity),
            "relationship": ("relationships", Relationship),
            "claim": ("claims", Claim),
        }
        for kind, body in zip(rows["kind"].to_pylist(), rows["body"].to_pylist(), strict=True):
            collection, record = kinds[kind]
            yield collection, decode(body, record), body

    def batch(self, rows: pa.Table) -> pa.Table:
        tokens_of = _LineTokens(self.analyzer).of
        columns: tuple[list[str], list[str], list[bytes], list[str], list[str], list[str]] = ([], [], [], [], [], [])
        collections, ids, bodies, tokens, fields, digests = columns
        for collection, record, body in self.made(rows):
            text = text_of(record)
            collections.append(collection)
            ids.append(record.id)
            bodies.append(body)
            found_by = tokens_of(text)
            if isinstance(record, TextUnit) and record.title.strip():
                found_by = f"{found_by} {about_token(record.title)}"
            tokens.append(found_by)
            metadata = filter_fields(record)
            fields.append(_json(metadata).decode() if metadata else "")
            passage = passage_of(record) if self.embedding and collection in self.vectors else ""
            digests.append(vector_digest(self.embedding, passage) if passage.strip() else "")
        return pa.table(list(columns), schema=schemas.ROWS)


class _LineTokens:
    """Analysed text, joined by spaces. The lines of a description stand in many items; each is analysed once."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._tokens = analyzer.tokens
        self._known: dict[str, str] = {}

    def of(self, text: str) -> str:
        out = []
        for line in text.split("\n"):
            tokens = self._known.get(line)
            if tokens is None:
                tokens = self._known[line] = " ".join(self._tokens(line))
            if tokens:
                out.append(tokens)
        return " ".join(out)


class TextUnitRowStage(RowStage):
    """Text units to rows. Where it stands is a filter field: ``document_id`` and ``path``."""

    name = "text_unit_rows"
    reads = schemas.TEXT_UNITS

    def made(self, rows: pa.Table) -> Iterator[Made]:
        names = ("id", "document_id", "title", "text", "tokens", "metadata")
        for id, document, title, text, tokens, fields in zip(*(rows[name].to_pylist() for name in names), strict=True):
            metadata = _metadata(fields) if fields else {}
            metadata["document_id"] = document
            unit = TextUnit(id=id, document_id=document, title=title, text=text, tokens=tokens, metadata=metadata)
            yield "text_units", unit, encode(unit)


class ReportRowStage(RowStage):
    """Reports to rows."""

    name = "report_rows"
    reads = pa.schema([pa.field("id", pa.string()), pa.field("body", pa.binary())])

    def made(self, rows: pa.Table) -> Iterator[Made]:
        for body in rows["body"].to_pylist():
            yield "reports", decode(body, Report), body


def filter_fields(record: Found) -> Metadata:
    """What searches can filter a row by: its documents' metadata; a report's place in the hierarchy and its rating."""
    if isinstance(record, Report):
        return {"level": record.level, "depth": record.depth, "rating": record.rating, "rank": record.rank}
    return record.metadata


def store_rows(rows: pa.Table, vectors: Mapping[str, bytes]) -> list[Row]:
    """Rows of one collection for the store. A row without a vector here keeps the one stored under its digest."""
    found = []
    names = ("id", "body", "tokens", "metadata", "vector_digest")
    for id, body, tokens, fields, name in zip(*(rows[n].to_pylist() for n in names), strict=True):
        raw = vectors.get(id)
        if raw == b"":  # it could not be embedded: words alone find it, and a later run tries again
            name = ""
        found.append(
            Row(
                id=id,
                body=body,
                tokens=tokens,
                metadata=_metadata(fields) if fields else None,
                vector=np.frombuffer(raw, np.float32) if raw else None,
                vector_digest=name,
            )
        )
    return found
