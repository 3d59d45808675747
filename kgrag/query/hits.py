"""From ids to hits: bodies, places in documents and lineage, read only for what is returned."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kgrag.ports import Collection, Vertex
from kgrag.query.fuse import Fused
from kgrag.query.question import Question
from kgrag.records import (
    Claim,
    DocumentStatus,
    Entity,
    Hit,
    HitKind,
    Relationship,
    Report,
    Section,
    Span,
    TextUnit,
    decode,
)

COLLECTION_OF: dict[HitKind, Collection] = {
    "text_unit": "text_units",
    "entity": "entities",
    "relationship": "relationships",
    "report": "reports",
    "claim": "claims",
    "summary": "summaries",
}


class Places:
    """Where text units stand: the registry's rows of their documents, each read once."""

    def __init__(self, documents: Mapping[str, DocumentStatus]) -> None:
        self._documents = documents
        self._spans: dict[str, dict[str, Span]] = {}

    def hit(self, unit: TextUnit, item: Fused, rank: int) -> Hit:
        """The unit as a hit; page, row and span are None where its document was removed in the meantime."""
        status = self._documents.get(unit.document_id)
        span = self._span(status, unit.id) if status is not None else None
        return Hit(
            kind="text_unit",
            id=unit.id,
            score=item.score,
            rank=rank,
            title=unit.title,
            text=unit.text,
            document_id=unit.document_id,
            path=status.path if status is not None else str(unit.metadata.get("path", "")),
            page=bisect_right(status.pages, span.start) if status is not None and status.pages and span is not None else None,
            row=status.row if status is not None else None,
            start=span.start if span is not None else None,
            end=span.end if span is not None else None,
            text_unit_ids=[unit.id],
            metadata=unit.metadata,
            sources=list(item.sources),
        )

    def _span(self, status: DocumentStatus, unit_id: str) -> Span | None:
        spans = self._spans.get(status.id)
        if spans is None:
            spans = self._spans[status.id] = {span.unit_id: span for span in status.units}
        return spans.get(unit_id)


async def read_units(question: Question, ranked: Sequence[Fused]) -> list[Hit]:
    """Text units as located hits, in this order; those no longer stored are left out."""
    ids = [item.id for item in ranked]
    bodies = await question.access.one(lambda: question.access.search.get("text_units", ids))
    units = {id: decode(body, TextUnit) for id, body in bodies.items()}
    documents = list({unit.document_id for unit in units.values()})
    places = Places(await question.access.one(lambda: question.access.status.get(documents)))
    found = [item for item in ranked if item.id in units]
    return [places.hit(units[item.id], item, rank) for rank, item in enumerate(found, 1)]


async def read_section(question: Question, kind: HitKind, ranked: Sequence[Fused], top_k: int) -> Section:
    """The best ``top_k`` items of one kind that still exist (and, where several filter fields were asked for, that one
    passing document states)."""
    if kind == "text_unit":
        return Section(kind=kind, hits=await read_units(question, ranked[:top_k]))
    ids = [item.id for item in ranked[:top_k]]
    collection = COLLECTION_OF[kind]
    bodies = await question.access.one(lambda: question.access.search.get(collection, ids))
    rows: dict[str, Any] = {id: decode(body, _RECORD[kind]) for id, body in bodies.items()}
    names = await _names(question, kind, rows.values())
    hits: list[Hit] = []
    for item in ranked[:top_k]:
        if item.id in rows:
            title, text = _RENDER[kind](rows[item.id], names)
            hits.append(_hit(kind, item, rows[item.id], len(hits) + 1, title, text))
    return Section(kind=kind, hits=hits)


def _hit(kind: HitKind, item: Fused, row: Any, rank: int, title: str, text: str) -> Hit:
    return Hit(
        kind=kind,
        id=item.id,
        score=item.score,
        rank=rank,
        title=title,
        text=text,
        text_unit_ids=list(row.text_unit_ids),
        metadata=getattr(row, "metadata", {}),
        sources=list(item.sources),
    )


async def _names(question: Question, kind: HitKind, rows: Iterable[Any]) -> Mapping[str, Vertex]:
    """The ends of relationships and claims: their display names move with votes, so they are joined when read."""
    if kind == "relationship":
        ends = {end for row in rows for end in (row.source_id, row.target_id)}
    elif kind == "claim":
        ends = {end for row in rows for end in (row.subject_id, row.object_id) if end}
    else:
        return {}
    wanted = sorted(ends)
    return await question.access.one(lambda: question.access.graph.vertices(wanted))


def _entity(row: Entity, names: Mapping[str, Vertex]) -> tuple[str, str]:
    kind = f" ({row.type})" if row.type else ""
    return row.name, f"{row.name}{kind}: {row.description}" if row.description else f"{row.name}{kind}"


def _relationship(row: Relationship, names: Mapping[str, Vertex]) -> tuple[str, str]:
    source = names[row.source_id].name if row.source_id in names else row.source_name
    target = names[row.target_id].name if row.target_id in names else row.target_name
    title = f"{source} -> {target}"
    kind = f" ({row.type})" if row.type else ""
    return title, f"{title}{kind}: {row.description}" if row.description else f"{title}{kind}"


def _claim(row: Claim, names: Mapping[str, Vertex]) -> tuple[str, str]:
    subject = names[row.subject_id].name if row.subject_id in names else ""
    target = names[row.object_id].name if row.object_id in names else row.object
    dates = "/".join(date for date in (row.start_date, row.end_date) if date)
    parts = [part for part in (row.type, row.status, dates) if part]
    head = f"{subject} -> {target}" if target else subject
    return head, f"{head} ({', '.join(parts)}): {row.description}" if parts else f"{head}: {row.description}"


def _report(row: Report, names: Mapping[str, Vertex]) -> tuple[str, str]:
    return row.title, row.full_content or row.summary


_RECORD: dict[HitKind, Any] = {"entity": Entity, "relationship": Relationship, "claim": Claim, "report": Report}
_RENDER: dict[HitKind, Callable[[Any, Mapping[str, Vertex]], tuple[str, str]]] = {
    "entity": _entity,
    "relationship": _relationship,
    "claim": _claim,
    "report": _report,
}
