"""What each row is found by, lexically and by its vector: the one place that says so."""

from __future__ import annotations

from kgrag.ids import digest, title_key
from kgrag.ports import Collection
from kgrag.records import Claim, Entity, Relationship, Report, TextUnit, decode

Found = TextUnit | Entity | Relationship | Claim | Report

KINDS: dict[Collection, type[Found]] = {
    "text_units": TextUnit,
    "entities": Entity,
    "relationships": Relationship,
    "claims": Claim,
    "reports": Report,
}
"""What the body of a collection's row is."""


def text_of(row: Found) -> str:
    """The text a row is found by. A relationship goes by the names its own statements use, so that it is
    rewritten only when they change."""
    if isinstance(row, TextUnit):
        return _joined(row.title, row.text)
    if isinstance(row, Entity):
        return _joined(row.name, row.description)
    if isinstance(row, Relationship):
        return _joined(" ".join(part for part in (row.source_name, row.type, row.target_name) if part), row.description)
    if isinstance(row, Claim):
        return row.description
    return _joined(row.title, row.full_content or row.summary)


def about_token(name: str) -> str:
    """The index term of every text unit whose document is titled ``name``: how a name leads to the passages that are
    about it. No analysis of text gives such a term."""
    return f"about:{digest(title_key(name))[:16]}"


def passage_of(row: Found) -> str:
    """The text a row's vector is made from: ``text_of``, but a report's title and summary stand for its findings, which
    say the same at five times the length."""
    return _joined(row.title, row.summary) if isinstance(row, Report) else text_of(row)


def passage_of_body(collection: Collection, body: bytes) -> str:
    """``passage_of`` a stored body."""
    return passage_of(decode(body, KINDS[collection]))


def vector_digest(identity: str, text: str) -> str:
    """Names a vector: the embedder's identity and the text."""
    return digest("vector", identity, text)


def _joined(head: str, body: str) -> str:
    return f"{head}\n{body}" if head and body else head or body
