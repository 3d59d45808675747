"""The pipeline's first stages: files to documents, documents to text units."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa

from kgrag import schemas
from kgrag.documents.chunk import ChunkSettings, chunk
from kgrag.documents.parse.isolated import ParserProcess
from kgrag.documents.parse.read import FailedRow, read_documents
from kgrag.documents.settings import DocumentSettings
from kgrag.documents.sources import SourceFile
from kgrag.errors import DocumentError, MissingExtraError
from kgrag.ids import digest
from kgrag.records import Document, Metadata
from kgrag.stage import MapStage, RowError

_BATCH_ROWS = 2048
_BATCH_CHARACTERS = 8 << 20
"""A table is handed on at that many characters: a string column of Arrow holds 2 GiB at most, and memory less."""

_LISTING = ("include", "exclude", "hidden", "symlinks", "standard_input")
_LIMITS = (
    "max_file_bytes",
    "max_characters",
    "max_rows",
    "max_pages",
    "max_expanded_bytes",
    "max_expansion",
    "max_seconds",
    "max_memory_bytes",
)
_encode = msgspec.json.Encoder(order="sorted").encode
_metadata = msgspec.json.Decoder(Metadata).decode


class ParseStage(MapStage):
    """Files to documents. A file or row that cannot be read is a row with an ``error``."""

    name = "parse"
    reads = schemas.FILES
    writes = schemas.DOCUMENTS

    def __init__(self, settings: DocumentSettings) -> None:
        self.settings = settings
        self._process = ParserProcess()

    def key(self) -> str:
        """Which files are listed and what they may cost changes no document that is read."""
        passwords = [p.get_secret_value() for p in self.settings.passwords]
        return digest(self.settings.model_dump_json(exclude={*_LISTING, *_LIMITS, "passwords"}), *passwords)

    def batch(self, rows: pa.Table) -> pa.Table:
        return pa.concat_tables([self.writes.empty_table(), *self.batches(rows)])

    def batches(self, rows: pa.Table) -> Iterator[pa.Table]:
        """The same rows in tables of bounded size, for a file of millions of rows."""
        held: list[dict[str, Any]] = []
        size = 0
        for file in rows.to_pylist():
            for row in self._file(file):
                held.append(row)
                size += len(row["text"])
                if len(held) >= _BATCH_ROWS or size >= _BATCH_CHARACTERS:
                    yield pa.Table.from_pylist(held, schema=self.writes)
                    held, size = [], 0
        if held:
            yield pa.Table.from_pylist(held, schema=self.writes)

    def _file(self, file: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if file["error"]:
            yield _failed(file, "", None, file["error"])
            return
        source = SourceFile(file["scope"], file["path"], file["uri"], file["size"])
        try:
            for found in read_documents(source, self.settings, self._process):
                if isinstance(found, FailedRow):
                    yield _failed(file, found.id, found.row, self._error(found.error))
                else:
                    yield _row(found)
        except (DocumentError, MissingExtraError) as error:
            yield _failed(file, "", None, self._error(error))

    def _error(self, error: Exception) -> str:
        return _encode(RowError.of(self.name, error)).decode()


class ChunkStage(MapStage):
    """Documents to text units; documents with an error have none."""

    name = "chunk"
    reads = schemas.DOCUMENTS
    writes = schemas.TEXT_UNITS

    def __init__(self, settings: ChunkSettings) -> None:
        self.settings = settings

    def key(self) -> str:
        return digest(self.settings.model_dump_json())

    def batch(self, rows: pa.Table) -> pa.Table:
        columns: list[list[Any]] = [[] for _ in self.writes.names]
        names = ("id", "scope", "path", "title", "text", "digest", "metadata", "error")
        for id, scope, path, title, text, content, fields, error in zip(*(rows[n].to_pylist() for n in names), strict=True):
            if error:
                continue
            metadata = _metadata(fields) if fields else {}
            document = Document(id=id, scope=scope, path=path, title=title, text=text, digest=content, metadata=metadata)
            carried = _encode({**metadata, "path": path}).decode()
            for unit, span in chunk(document, self.settings):
                row = (unit.id, id, title, unit.text, unit.tokens, span.start, span.end, carried, "")
                for column, value in zip(columns, row, strict=True):
                    column.append(value)
        return pa.table(columns, schema=self.writes)


def _row(document: Document) -> dict[str, Any]:
    return {
        "id": document.id,
        "scope": document.scope,
        "path": document.path,
        "title": document.title,
        "text": document.text,
        "digest": document.digest,
        "metadata": _encode(document.metadata).decode() if document.metadata else "",
        "pages": document.pages,
        "row": document.row,
        "warnings": document.warnings,
        "error": "",
    }


def _failed(file: dict[str, Any], id: str, row: int | None, error: str) -> dict[str, Any]:
    empty = {"title": "", "text": "", "digest": "", "metadata": "", "pages": [], "warnings": []}
    return {"id": id, "scope": file["scope"], "path": file["path"], **empty, "row": row, "error": error}
