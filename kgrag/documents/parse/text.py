"""Plain text: one document per file."""

from __future__ import annotations

from collections.abc import Iterator

from kgrag.documents.content import Content
from kgrag.documents.encoding import clean, decode
from kgrag.documents.parse.formats import Parsed
from kgrag.documents.settings import DocumentSettings


def parse(content: Content, settings: DocumentSettings) -> Iterator[Parsed]:
    raw, warnings = decode(content, settings.encoding)
    text, notes = clean(raw)
    yield Parsed(text=text, warnings=[*warnings, *notes])
