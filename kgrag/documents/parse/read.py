"""One file to its documents, whatever its format: where identity and limits are applied."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

import msgspec

from kgrag.documents.content import Content, fetch
from kgrag.documents.parse.formats import Format, Parsed, Refused, find_format
from kgrag.documents.parse.isolated import ParserProcess
from kgrag.documents.settings import DocumentSettings
from kgrag.documents.sources import SourceFile
from kgrag.errors import DocumentError, EmptyDocumentError
from kgrag.ids import digest, document_id
from kgrag.records import Document

_LARGE = 1 << 20
"""Bytes from which a file that is read as a whole is parsed in the separate process, whatever its format."""


class FailedRow(msgspec.Struct, frozen=True):
    """A row that cannot be a document: the id it would have, its number, and why."""

    id: str
    row: int
    error: DocumentError


def read_documents(file: SourceFile, settings: DocumentSettings, process: ParserProcess) -> Iterator[Document | FailedRow]:
    """The documents of a file in its order, and its rows that cannot be read. Raises DocumentError where that is the whole
    file (then what came before still stands), EmptyDocumentError where it holds nothing, MissingExtraError,
    ConfigurationError."""
    with fetch(file.uri, file.path) as content:
        if not content.size:
            raise _empty(file.path)
        kind, warnings = find_format(content, settings.format)
        if not kind.streamed and content.size > settings.max_file_bytes:
            raise DocumentError(
                f"The file has {content.size:,} bytes; at most {settings.max_file_bytes:,} are read.",
                subject=file.path,
                remedy="Split it, exclude it, or raise documents.max_file_bytes.",
            )
        empty = True
        for found in _parsed(content, kind, settings, process):
            empty = False
            if isinstance(found, Refused):
                yield _failed(file, found)
            else:
                yield _document(file, found, warnings, settings)
                warnings = []
        if empty:
            raise _empty(file.path)


def _parsed(content: Content, kind: Format, settings: DocumentSettings, process: ParserProcess) -> Iterator[Parsed | Refused]:
    if kind.isolated or (not kind.streamed and content.size > _LARGE):
        return process.parse(content, kind.name, settings)
    return kind.load()(content, settings)


def _document(file: SourceFile, found: Parsed, warnings: list[str], settings: DocumentSettings) -> Document:
    if not found.text.strip():
        raise _empty(file.path)
    if len(found.text) > settings.max_characters:
        raise DocumentError(
            f"The document has {len(found.text):,} characters; at most {settings.max_characters:,} are taken.",
            subject=file.path,
            remedy="Split it, or raise documents.max_characters.",
        )
    metadata = found.metadata
    if found.title and "title" not in metadata:
        metadata = {**metadata, "title": found.title}
    return Document(
        id=document_id(file.scope, file.path, found.key),
        scope=file.scope,
        path=file.path,
        title=found.title or ("" if found.key else PurePosixPath(file.path).stem),
        text=found.text,
        digest=digest(found.text),
        metadata=metadata,
        pages=found.pages,
        row=found.row,
        warnings=[*warnings, *found.warnings],
    )


def _failed(file: SourceFile, found: Refused) -> FailedRow:
    kind = EmptyDocumentError if found.empty else DocumentError
    key = found.key or digest("refused", str(found.row))
    return FailedRow(
        document_id(file.scope, file.path, key), found.row, kind(found.message, subject=file.path, remedy=found.remedy)
    )


def _empty(path: str) -> EmptyDocumentError:
    return EmptyDocumentError("The file holds no text.", subject=path, remedy="Fill it in, or exclude it.")
