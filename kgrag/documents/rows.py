"""A row of a table, or an object of a JSON file, to a document of its own."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from msgspec import structs

from kgrag.documents.encoding import clean
from kgrag.documents.parse.formats import Parsed, Refused
from kgrag.documents.settings import DocumentSettings
from kgrag.errors import DocumentError
from kgrag.ids import digest
from kgrag.records import Metadata, Scalar

_TEXT = ("text", "content", "contents", "body", "page_content", "passage", "article", "paragraph", "document")
_TITLE = ("title", "name", "headline", "subject")
_ID = ("id", "_id", "doc_id", "document_id", "docid", "uuid", "guid")
_RESERVED = ("document_id", "path")
_NONE = "-"
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,17})(?:\.\d{1,15})?")

Row = Mapping[str, Any]


class RowReader:
    """Rows of one file to documents. Which columns hold identity, title and text is settled once, from ``columns``: those
    of the header, or of the first rows. Raises DocumentError where a configured column is not among them."""

    def __init__(self, columns: Iterable[str], settings: DocumentSettings, name: str, *, cells: bool = False) -> None:
        """``cells``: values are written text, in which plain numbers count as numbers."""
        columns = list(columns)
        self._settings, self._name, self._cells = settings, name, cells
        self._id = _pick(columns, settings.id_column, _ID, "id_column", name)
        self._title = _pick(columns, settings.title_column, _TITLE, "title_column", name)
        self._text = _pick(columns, settings.text_column, _TEXT, "text_column", name)
        self._first_row: dict[bytes, int] = {}
        self._occurrences: Counter[bytes] = Counter()

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns whose values are texts, whatever they look like."""
        return tuple(name for name in (self._text, self._title) if name)

    def read(self, row: Row, number: int, *, part: str = "", warnings: Sequence[str] = ()) -> Parsed | Refused:
        """``part`` tells sheets of one file apart."""
        notes = list(warnings)
        found = self._read(row, number, part, notes)
        if isinstance(found, Refused) and notes:
            return structs.replace(found, message=f"{found.message} {' '.join(dict.fromkeys(notes))}")
        return found

    def _read(self, row: Row, number: int, part: str, notes: list[str]) -> Parsed | Refused:
        key, refused = self._key(row, number, part)
        if refused is not None:
            return refused
        text = self._text_of(row, notes) if self._text else self._joined(row, notes)
        if isinstance(text, DocumentError):
            return Refused(message=text.message, remedy=text.remedy, row=number, key=key)
        if not text.strip():
            what = f'The row\'s "{self._text}" is empty.' if self._text else "The row is empty."
            return Refused(message=what, remedy="Fill it in or take the row out.", row=number, key=key, empty=True)
        if len(text) > self._settings.max_characters:
            return Refused(message=f"The row's text has {len(text):,} characters.", remedy=TOO_LONG, row=number, key=key)
        title = _string(row.get(self._title), notes) if self._title else ""
        metadata = self._metadata(row, title, notes)
        if part:
            metadata["sheet"] = part
        return Parsed(text=text, title=title, metadata=metadata, row=number, key=key, warnings=list(dict.fromkeys(notes)))

    def _key(self, row: Row, number: int, part: str) -> tuple[str, Refused | None]:
        value = row.get(self._id) if self._id else None
        if value is None or value == "":
            content = digest(part, canonical(row))
            short = _short(content)
            self._occurrences[short] += 1
            return json.dumps(["content", content, self._occurrences[short]]), None
        key = json.dumps(["id", canonical(value) if isinstance(value, (dict, list)) else value, part])
        first = self._first_row.setdefault(_short(key), number)
        if first == number:
            return key, None
        message = f'Its "{self._id}" is that of row {first}, {json.dumps(value, ensure_ascii=False)[:80]}, which was kept.'
        remedy = "Give each row an id of its own, or set documents.id_column to another column or to - for none."
        return key, Refused(message=message, remedy=remedy, row=number, key=digest(key, str(number)))

    def _text_of(self, row: Row, notes: list[str]) -> str | DocumentError:
        value = row.get(self._text)
        if value is None and self._text in row:
            return ""
        if value is None:
            keys = ", ".join(f'"{k}"' for k in list(row)[:20])
            return DocumentError(
                f'The row has no "{self._text}", which holds the text of this file\'s rows; it has {keys or "nothing"}.',
                subject=self._name,
                remedy="Add it, or set documents.text_column to the right one or to - to join all columns.",
            )
        if not isinstance(value, str):
            return DocumentError(
                f'The row\'s "{self._text}" is {kind_of(value)}, not a text.',
                subject=self._name,
                remedy="Make it a string, or set documents.text_column to another column.",
            )
        text, changed = clean(value)
        notes += changed
        return text

    def _joined(self, row: Row, notes: list[str]) -> str:
        lines = []
        for name, value in row.items():
            if name == self._id or value is None or value == "":
                continue
            shown = value if isinstance(value, str) else _shown(value)
            text, changed = clean(f"{name}: {shown}")
            notes += changed
            lines.append(text)
        return "\n".join(lines)

    def _metadata(self, row: Row, title: str, notes: list[str]) -> Metadata:
        others = ((k, v) for k, v in row.items() if k not in (self._text, self._title))
        if self._cells:
            others = ((k, cell(v)) for k, v in others)
        found = fields(others, self._settings, notes)
        if title:
            found["title"] = title
        return found


TOO_LONG = "Split it, or raise documents.max_characters."


def canonical(value: Any) -> str:
    """One text per JSON value, whatever the order of its keys."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)


def fields(pairs: Iterable[tuple[Any, Any]], settings: DocumentSettings, notes: list[str]) -> Metadata:
    """Filter fields: scalars and lists of scalars as they are, other values as JSON; what is longer than
    ``max_metadata_characters`` is left out and named in ``notes``."""
    found: Metadata = {}
    too_long = []
    for raw, value in pairs:
        name = clean(str(raw))[0].strip()
        name = f"{name}_" if name in _RESERVED else name
        scalar = _field(value)
        if not name or scalar is None or scalar in ("", []):
            continue
        size = sum(len(v) if isinstance(v, str) else 8 for v in scalar) if isinstance(scalar, list) else len(str(scalar))
        if size > settings.max_metadata_characters or len(name) > settings.max_metadata_characters:
            too_long.append(name[:40])
        else:
            found[name] = scalar
    if too_long:
        notes.append(f"Too long for metadata, left out of it: {', '.join(too_long)}.")
    return found


def cell(value: str) -> Scalar:
    """What a CSV cell holds: a number where it is written as a plain one (``12``, ``3.5``, not ``007``), else the text."""
    if _NUMBER.fullmatch(value):
        return float(value) if "." in value else int(value)
    return value


def _short(key: str) -> bytes:
    """Millions of keys are held for a large file: 64 bits tell them apart."""
    return blake2b(key.encode(), digest_size=8).digest()


def _field(value: Any) -> Scalar | list[Scalar] | None:
    if isinstance(value, str):
        return clean(value)[0]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (list, tuple)) and not any(isinstance(v, (list, tuple, dict)) for v in value):
        return [v for v in map(_field, value) if v is not None and not isinstance(v, list)]
    return clean(canonical(value))[0]


def _pick(columns: Sequence[str], wanted: str, usual: Sequence[str], setting: str, name: str) -> str:
    if wanted == _NONE:
        return ""
    if wanted:
        if wanted in columns:
            return wanted
        shown = ", ".join(f'"{c}"' for c in columns[:20]) or "none"
        raise DocumentError(
            f'There is no column "{wanted}"; there are {shown}.', subject=name, remedy=f"Set documents.{setting} to one of them."
        )
    folded = {c.strip().casefold(): c for c in reversed(columns)}
    return next((folded[u] for u in usual if u in folded), "")


def _string(value: Any, notes: list[str]) -> str:
    if value is None:
        return ""
    text, changed = clean(value if isinstance(value, str) else _shown(value))
    notes += changed
    return " ".join(text.split())


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def kind_of(value: Any) -> str:
    """What a JSON value is, in words."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, (int, float)):
        return "a number"
    return "a list" if isinstance(value, list) else "an object"
