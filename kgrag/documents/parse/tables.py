"""CSV and TSV: a row is a document. Read as a stream."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator

from kgrag.documents.content import Content
from kgrag.documents.encoding import clean, find_encoding, open_text
from kgrag.documents.parse.formats import Parsed, Refused
from kgrag.documents.rows import RowReader
from kgrag.documents.settings import DocumentSettings
from kgrag.errors import DocumentError

_EXCEL_DELIMITER = re.compile(r"sep=(.)[\r\n]*")
_DELIMITERS = (",", ";", "\t", "|")


def parse(content: Content, settings: DocumentSettings) -> Iterator[Parsed | Refused]:
    encoding = find_encoding(content, settings.encoding)
    csv.field_size_limit(max(settings.max_characters, csv.field_size_limit()))
    with open_text(content, encoding, newline="") as stream:
        lines = _Lines(iter(lambda: stream.readline(settings.max_characters), ""))
        first = next((line for line in lines if line.strip()), "")
        delimiter = "\t" if content.suffix in (".tsv", ".tab") else _delimiter(first)
        if stated := _EXCEL_DELIMITER.fullmatch(first):
            delimiter, first = stated[1], next(lines, "")
        rows = csv.reader(lines.again(first), delimiter=delimiter)
        try:
            header = next((r for r in rows if any(cell.strip() for cell in r)), None)
        except csv.Error as error:
            raise DocumentError(f"The header cannot be read: {error}.", subject=content.name, remedy="Correct it.") from error
        if header is None:
            return
        columns, warnings = name_columns(header)
        reader = RowReader(columns, settings, content.name, cells=True)
        warnings[:0] = encoding.warnings
        for found in _rows(rows, lines, columns, reader, settings):
            if warnings and isinstance(found, Parsed):
                found.warnings[:0] = warnings
                warnings = []
            yield found


def name_columns(header: list[str]) -> tuple[list[str], list[str]]:
    """Column names, each once: an empty one is named by its place, a second one of a name gets a number; and warnings."""
    names: list[str] = []
    seen: Counter[str] = Counter()
    warnings = []
    for place, raw in enumerate(header, 1):
        name = clean(raw)[0].strip() or f"column_{place}"
        seen[name] += 1
        if seen[name] > 1:
            warnings.append(f'Two columns are named "{name}"; the later one is called "{name}_{seen[name]}".')
            name = f"{name}_{seen[name]}"
        names.append(name)
    return names, warnings


def _rows(
    rows: Iterator[list[str]], lines: _Lines, columns: list[str], reader: RowReader, settings: DocumentSettings
) -> Iterator[Parsed | Refused]:
    number = 0
    while True:
        lines.start()
        try:
            cells = next(rows, None)
        except csv.Error as error:
            number += 1
            yield Refused(message=f"Line {lines.first} cannot be read: {error}.", remedy="Correct it.", row=number)
            continue
        if cells is None:
            return
        if not cells:
            continue
        number += 1
        if number > settings.max_rows:
            message = f"The file has more than {settings.max_rows:,} rows; the rest was not read."
            yield Refused(message=message, remedy="Split it, or raise documents.max_rows.", row=number)
            return
        yield _row(cells, number, lines, columns, reader)


def _row(cells: list[str], number: int, lines: _Lines, columns: list[str], reader: RowReader) -> Parsed | Refused:
    if lines.ended:  # the end came inside a cell
        message = f"A quotation mark in the row that begins in line {lines.first} is never closed."
        return Refused(message=message, remedy="Close it, or double a quotation mark that is part of the text.", row=number)
    while len(cells) > len(columns) and not cells[-1].strip():
        cells.pop()
    if len(cells) > len(columns):
        message = f"Line {lines.first} has {len(cells)} cells, the header {len(columns)}."
        return Refused(message=message, remedy="Put cells that hold the delimiter in quotation marks.", row=number)
    notes = []
    if len(cells) < len(columns):
        notes.append(f"Line {lines.first} has {len(cells)} cells, the header {len(columns)}; the others were taken as empty.")
        cells += [""] * (len(columns) - len(cells))
    return reader.read(dict(zip(columns, cells, strict=True)), number, warnings=notes)


def _delimiter(header: str) -> str:
    """The one that stands most often in the header outside quotation marks."""
    bare = "".join(header.split('"')[0::2])
    return max(_DELIMITERS, key=lambda d: (bare.count(d), -_DELIMITERS.index(d)))


class _Lines:
    """Counts lines, so that a row can be traced to where it begins."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self._held = ""
        self.number = self.first = 0
        self.ended = False

    def again(self, line: str) -> _Lines:
        self._held = line
        self.number -= 1
        return self

    def start(self) -> None:
        self.first = self.number + 1

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line, self._held = self._held, ""
        if not line:
            line = next(self._lines, "")
            if not line:
                self.ended = True
                raise StopIteration
        self.number += 1
        return line
