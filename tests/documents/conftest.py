"""Files to documents, as a run reads them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kgrag.documents.content import local_uri
from kgrag.documents.parse.isolated import ParserProcess
from kgrag.documents.parse.read import FailedRow, read_documents
from kgrag.documents.settings import DocumentSettings
from kgrag.documents.sources import SourceFile
from kgrag.errors import KgragError
from kgrag.records import Document

DATA = Path(os.environ.get("KGRAG_TEST_DATA") or Path(__file__).parents[3] / "shared" / "data")


@dataclass
class Reading:
    """What came of one file: its documents, rows that failed, and the failure of the whole file."""

    documents: list[Document]
    rows: list[FailedRow]
    error: KgragError | None

    @property
    def only(self) -> Document:
        assert self.error is None, self.error
        assert len(self.documents) == 1
        assert not self.rows
        return self.documents[0]

    @property
    def warnings(self) -> str:
        return " ".join(w for d in self.documents for w in d.warnings)


Read = Callable[..., Reading]


@pytest.fixture(scope="session")
def process() -> Iterator[ParserProcess]:
    with ParserProcess() as one:
        yield one


@pytest.fixture
def read(process: ParserProcess, tmp_path: Path) -> Read:
    """Reads a path, or a new file with a name and content."""

    def reading(source: Path | str, content: bytes | str | None = None, **settings: Any) -> Reading:
        path = Path(source)
        if content is not None:
            path = tmp_path / path
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        file = SourceFile("scope", path.name, local_uri(str(path)), path.stat().st_size)
        found = Reading([], [], None)
        try:
            for item in read_documents(file, DocumentSettings(**settings), process):
                if isinstance(item, Document):
                    found.documents.append(item)
                else:
                    found.rows.append(item)
        except KgragError as error:
            found.error = error
        return found

    return reading
