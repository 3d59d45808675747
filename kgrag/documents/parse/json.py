"""JSON and JSON Lines: rows of an array, lines, or one object."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from kgrag.documents.content import Content
from kgrag.documents.encoding import decode, find_encoding, open_text
from kgrag.documents.parse.formats import Parsed, Refused
from kgrag.documents.rows import TOO_LONG, RowReader, kind_of
from kgrag.documents.settings import DocumentSettings
from kgrag.errors import DocumentError, EmptyDocumentError

_FIRST_ROWS = 100
_TOO_MANY = "Split the file, or raise documents.max_rows."


def parse(content: Content, settings: DocumentSettings) -> Iterator[Parsed | Refused]:
    """Rows of an array; one document for an object; lines where the file is JSON Lines after all."""
    text, warnings = decode(content, settings.encoding)
    if not text.strip():
        return
    notes: list[str] = []
    try:
        value = _loads(text, notes)
    except (ValueError, RecursionError) as error:
        if _is_lines(text):
            yield from _rows(_lines(iter(text.split("\n")), settings), settings, content.name, warnings)
            return
        raise DocumentError(f"The file is not JSON: {_reason(error)}.", subject=content.name, remedy="Correct it.") from error
    if isinstance(value, list):
        if len(value) > settings.max_rows:
            raise DocumentError(f"The file has {len(value):,} rows.", subject=content.name, remedy=_TOO_MANY)
        yield from _rows(((number, row, []) for number, row in enumerate(value, 1)), settings, content.name, [*warnings, *notes])
        return
    for found in _rows(iter([(1, value, notes)]), settings, content.name, warnings):
        if isinstance(found, Refused):
            raise (EmptyDocumentError if found.empty else DocumentError)(found.message, subject=content.name, remedy=found.remedy)
        yield Parsed(text=found.text, title=found.title, metadata=found.metadata, warnings=found.warnings)


def parse_lines(content: Content, settings: DocumentSettings) -> Iterator[Parsed | Refused]:
    """One row a line, read as a stream. A bad line costs itself."""
    encoding = find_encoding(content, settings.encoding)
    with open_text(content, encoding, newline="\n") as stream:
        lines = iter(lambda: stream.readline(settings.max_characters), "")
        yield from _rows(_lines(lines, settings), settings, content.name, list(encoding.warnings))


Item = tuple[int, Any, list[str]]
"""Row number, value (a DocumentError where it could not be read), warnings."""


def _lines(lines: Iterator[str], settings: DocumentSettings) -> Iterator[Item]:
    number = 0
    whole = True
    for line in lines:
        follows, whole = not whole, line.endswith("\n") or len(line) < settings.max_characters
        number += not follows
        if number > settings.max_rows:
            message = f"The file has more than {settings.max_rows:,} rows; the rest was not read."
            yield number, DocumentError(message, remedy=_TOO_MANY), []
            return
        if follows or not line.strip():
            continue
        if not whole:
            yield number, DocumentError(f"The line has more than {settings.max_characters:,} characters.", remedy=TOO_LONG), []
            continue
        notes: list[str] = []
        try:
            yield number, _loads(line.lstrip("\ufeff"), notes), notes
        except (ValueError, RecursionError) as error:
            yield number, DocumentError(f"The line is not JSON: {_reason(error)}.", remedy="Correct it or take it out."), []


def _rows(items: Iterator[Item], settings: DocumentSettings, name: str, warnings: list[str]) -> Iterator[Parsed | Refused]:
    """``warnings`` are about the file and stand with its first document."""
    held = list(islice(items, _FIRST_ROWS))
    columns = list(dict.fromkeys(key for _, value, _ in held if isinstance(value, dict) for key in value))
    reader = RowReader(columns or [_STRING], settings, name)
    for number, value, notes in chain(held, items):
        found = _row(reader, number, value, notes, bool(columns))
        if warnings and isinstance(found, Parsed):
            found.warnings[:0] = warnings
            warnings = []
        yield found


_STRING = "text"


def _row(reader: RowReader, number: int, value: Any, notes: list[str], has_columns: bool) -> Parsed | Refused:
    if isinstance(value, DocumentError):
        return Refused(message=value.message, remedy=value.remedy, row=number)
    if isinstance(value, str) and not has_columns:
        value = {_STRING: value}
    if not isinstance(value, dict):
        return Refused(
            message=f"The row is {kind_of(value)}, not an object.", remedy="Make it an object with its text.", row=number
        )
    return reader.read(value, number, warnings=notes)


def _loads(text: str, notes: list[str]) -> Any:
    """As ``json.loads``; a key that stands twice keeps its last value and is noted, NaN and infinities are refused."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = sorted({n for n in names if names.count(n) > 1}) if len(names) < 1000 else ["one"]
            notes.append(f"A key stands twice in one object, the last value was kept: {', '.join(twice)[:200]}.")
        return found

    return json.loads(text, object_pairs_hook=unique, parse_constant=_refuse, strict=False)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


def _is_lines(text: str) -> bool:
    first, _, rest = text.lstrip().partition("\n")
    if not first.startswith("{") or not rest.strip():
        return False
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return False
    return True


def _reason(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error).rstrip(".")
