"""What .docx, .pptx and .xlsx have in common: a zip archive of XML parts, checked before a library opens it."""

from __future__ import annotations

import zipfile
from typing import Any

from kgrag.documents.content import Content
from kgrag.documents.rows import fields
from kgrag.documents.settings import MIB, DocumentSettings
from kgrag.errors import DocumentError
from kgrag.records import Metadata

_MAX_PARTS = 100_000
_SMALL = 64 * MIB
_PROLOGUE = 8192


def check_archive(content: Content, settings: DocumentSettings) -> None:
    """Raises DocumentError for an archive that is damaged or encrypted, would unfold beyond the limits, or declares XML
    entities (Office files have none)."""
    try:
        with content.open() as stream, zipfile.ZipFile(stream) as archive:
            parts = archive.infolist()
            expanded = sum(part.file_size for part in parts)
            if len(parts) > _MAX_PARTS or expanded > settings.max_expanded_bytes:
                raise DocumentError(
                    f"It unpacks to {expanded:,} bytes in {len(parts):,} parts.",
                    subject=content.name,
                    remedy="Raise documents.max_expanded_bytes if it is an honest file.",
                )
            if expanded > _SMALL and expanded > settings.max_expansion * content.size:
                raise DocumentError(
                    f"It unpacks to {expanded // max(1, content.size):,} times its size, as files made to fill a memory do.",
                    subject=content.name,
                    remedy="Raise documents.max_expansion if it is an honest file.",
                )
            for part in parts:
                _check_part(archive, part, content)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError) as error:
        raise DocumentError(
            f"The file is damaged: {error}.", subject=content.name, remedy="Save it anew with its program."
        ) from error


def _check_part(archive: zipfile.ZipFile, part: zipfile.ZipInfo, content: Content) -> None:
    if part.flag_bits & 1:
        raise DocumentError("The file is encrypted.", subject=content.name, remedy="Save it without a password.")
    if not part.filename.endswith((".xml", ".rels")):
        return
    with archive.open(part) as stream:
        start = stream.read(_PROLOGUE).replace(b"\x00", b"")  # UTF-16 as well
    if b"<!DOCTYPE" in start or b"<!ENTITY" in start:
        raise DocumentError(
            f"Its part {part.filename} declares XML entities, which no Office program writes.",
            subject=content.name,
            remedy="Do not trust it; save it anew with its program.",
        )


def properties(core: Any, settings: DocumentSettings, warnings: list[str]) -> Metadata:
    """Title, author, keywords and dates of an Office file's core properties."""
    pairs = [(name, getattr(core, name, None)) for name in ("title", "author", "subject", "keywords", "language")]
    for name in ("created", "modified"):
        value = getattr(core, name, None)
        pairs.append((name, value.isoformat() if value else None))
    return fields(((name, value) for name, value in pairs if value), settings, warnings)


def table_lines(rows: list[list[str]]) -> list[str]:
    """A table as lines of cells between bars, as in Markdown; empty rows are left out."""
    lines = []
    for row in rows:
        cells = [" ".join(cell.split()) for cell in row]
        if any(cells):
            lines.append(f"| {' | '.join(cells)} |")
    return lines
