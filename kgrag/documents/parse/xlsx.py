"""Excel: a row is a document, as in CSV; its sheet is part of its metadata. Values are those last computed."""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import Any

from kgrag.documents.content import Content
from kgrag.documents.encoding import clean
from kgrag.documents.parse.extras import package
from kgrag.documents.parse.formats import Parsed, Refused
from kgrag.documents.parse.office import check_archive
from kgrag.documents.parse.tables import name_columns
from kgrag.documents.rows import RowReader
from kgrag.documents.settings import DocumentSettings
from kgrag.errors import DocumentError


def parse(content: Content, settings: DocumentSettings) -> Iterator[Parsed | Refused]:
    openpyxl = package("openpyxl", "Excel files")
    check_archive(content, settings)
    with content.open() as stream, python_warnings.catch_warnings():
        python_warnings.simplefilter("ignore")  # about styles and extensions that are not read
        try:
            book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
        except (KeyError, ValueError, openpyxl.utils.exceptions.InvalidFileException) as error:
            raise DocumentError(
                f"The file is damaged: {error}.", subject=content.name, remedy="Save it anew with its program."
            ) from error
        count = 0
        for sheet in book.worksheets:
            for found in _sheet(sheet, content, settings):
                count += 1
                yield found
                if count >= settings.max_rows:
                    message = f"The file has more than {settings.max_rows:,} rows; the rest was not read."
                    yield Refused(message=message, remedy="Split it, or raise documents.max_rows.", row=count + 1)
                    return


def _sheet(sheet: Any, content: Content, settings: DocumentSettings) -> Iterator[Parsed | Refused]:
    sheet.reset_dimensions()  # what the file says of its size may be wrong, or made to fill a memory
    reader: RowReader | None = None
    columns: list[str] = []
    warnings: list[str] = []
    part = clean(sheet.title)[0]
    for number, raw in enumerate(sheet.iter_rows(values_only=True), 1):
        cells = [_value(value) for value in raw]
        while cells and cells[-1] in (None, ""):
            cells.pop()
        if not any(cell not in (None, "") for cell in cells):
            continue
        if reader is None:
            columns, warnings = name_columns([str(cell if cell is not None else "") for cell in cells])
            reader = RowReader(columns, settings, content.name)
            continue
        if len(cells) > len(columns):
            more = [f"column_{place}" for place in range(len(columns) + 1, len(cells) + 1)]
            warnings.append(f"Row {number} of {part} has cells beyond the header, named {more[0]} and so on.")
            columns = columns + more
        row = {name: value for name, value in zip(columns, cells, strict=False) if value not in (None, "")}
        yield reader.read({**row, **_text_cells(row, reader)}, number, part=part, warnings=warnings)
        warnings = []


def _text_cells(row: dict[str, Any], reader: RowReader) -> dict[str, Any]:
    """A number typed where the text stands is text."""
    return {name: str(row[name]) for name in reader.text_columns if name in row}


def _value(value: Any) -> Any:
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    return str(value) if isinstance(value, timedelta) else value
