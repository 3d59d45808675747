"""The formats there are, and which one a file has: by its content first, by its suffix where content does not tell.

A third party adds one with an entry point of the group ``kgrag.parsers`` that names a ``Format``.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points

import msgspec

from kgrag.documents.content import Content
from kgrag.documents.settings import DocumentSettings
from kgrag.errors import ConfigurationError, DocumentError
from kgrag.records import Metadata


class Parsed(msgspec.Struct, frozen=True, kw_only=True, tag="parsed"):
    """A document as its parser sees it. ``key`` tells rows of one file apart (empty: the file is the document); ``row`` is
    what a user would look for: the line of JSONL, the record of CSV and JSON (from 1, without header), the row of a sheet.
    ``pages`` are offsets of page starts."""

    text: str
    title: str = ""
    metadata: Metadata = {}
    pages: list[int] = []
    row: int | None = None
    key: str = ""
    warnings: list[str] = []


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """A row that cannot be a document; the rows around it are not touched. ``key`` as in ``Parsed``, where it is known."""

    message: str
    remedy: str
    row: int
    key: str = ""
    empty: bool = False
    warnings: list[str] = []


Parse = Callable[[Content, DocumentSettings], Iterator[Parsed | Refused]]
"""Raises DocumentError where the whole file cannot be read, MissingExtraError where a package is missing."""


@dataclass(frozen=True)
class Format:
    """A file format. ``parse`` is a function or where to import it from (``module:name``), so that its library loads with
    the first such file. ``isolated`` formats run in a separate process, bounded in time and memory; others do when a file
    is large, unless they are ``streamed``."""

    name: str
    suffixes: tuple[str, ...]
    parse: Parse | str
    isolated: bool = False
    streamed: bool = False

    def load(self) -> Parse:
        if not isinstance(self.parse, str):
            return self.parse
        module, _, name = self.parse.partition(":")
        found: Parse = getattr(import_module(module), name)
        return found


_HERE = "kgrag.documents.parse"
_BUILT_IN = (
    Format("text", (".txt", ".text", ".log", ".rst", ""), f"{_HERE}.text:parse"),
    Format("markdown", (".md", ".markdown"), f"{_HERE}.markdown:parse"),
    Format("html", (".html", ".htm", ".xhtml"), f"{_HERE}.html:parse", isolated=True),
    Format("csv", (".csv",), f"{_HERE}.tables:parse", streamed=True),
    Format("tsv", (".tsv", ".tab"), f"{_HERE}.tables:parse", streamed=True),
    Format("json", (".json",), f"{_HERE}.json:parse"),
    Format("jsonl", (".jsonl", ".ndjson"), f"{_HERE}.json:parse_lines", streamed=True),
    Format("pdf", (".pdf",), f"{_HERE}.pdf:parse", isolated=True),
    Format("docx", (".docx", ".docm"), f"{_HERE}.docx:parse", isolated=True),
    Format("pptx", (".pptx", ".pptm"), f"{_HERE}.pptx:parse", isolated=True),
    Format("xlsx", (".xlsx", ".xlsm"), f"{_HERE}.xlsx:parse", isolated=True),
)
_OFFICE_PARTS = (("word/document.xml", "docx"), ("ppt/presentation.xml", "pptx"), ("xl/workbook.xml", "xlsx"))
_SIGNATURES = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
    (b"RIFF", "an image, sound or video"),
    (b"ID3", "a sound"),
    (b"OggS", "a sound or video"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"(\xb5/\xfd", "a zstd archive"),
    (b"Rar!", "a RAR archive"),
    (b"\x7fELF", "a program"),
    (b"PAR1", "a Parquet table"),
    (b"SQLite format 3", "an SQLite database"),
)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_HTML = re.compile(rb"\s*(?:<!--.*?-->\s*)*(?:<\?xml[^>]*>\s*)?(?:<!doctype html|<html[\s>])", re.IGNORECASE | re.DOTALL)
_HEAD = 8192


@lru_cache(maxsize=1)
def formats() -> dict[str, Format]:
    """All formats by name; an entry point replaces a built-in of its name."""
    found = {f.name: f for f in _BUILT_IN}
    for point in entry_points(group="kgrag.parsers"):
        added = point.load()
        if not isinstance(added, Format):
            raise ConfigurationError(
                f"The parser {point.name!r} ({point.value}) is no Format.",
                subject=point.value,
                remedy="Its entry point must name a kgrag.documents.parse.formats.Format.",
            )
        found[added.name] = added
    return found


@lru_cache(maxsize=1)
def suffixes() -> dict[str, Format]:
    """The format each suffix (with its dot, lower case) stands for; later formats win."""
    return {suffix: f for f in formats().values() for suffix in f.suffixes}


def find_format(content: Content, wanted: str = "") -> tuple[Format, list[str]]:
    """The format of a file, and a warning where its name says another. Raises DocumentError, ConfigurationError."""
    if wanted:
        known = formats()
        if wanted not in known:
            raise ConfigurationError(
                f"There is no format {wanted!r}.",
                subject=wanted,
                remedy=f"Set documents.format to one of {', '.join(sorted(known))}.",
            )
        return known[wanted], []
    named = suffixes().get(content.suffix)
    told = _told_by_content(content, named)
    if told is None:
        return named or formats()["text"], []
    if named is None or named.name == told.name or (named.name == "text" and not content.suffix):
        return told, []
    return told, [f"Its name ends in {content.suffix}, but it is {told.name}; read as that."]


def _told_by_content(content: Content, named: Format | None) -> Format | None:
    if named is not None and named not in _BUILT_IN:
        return None
    head = content.read(_HEAD)
    if head[:1024].lstrip().startswith(b"%PDF-") or b"\n%PDF-" in head[:1024]:
        return formats()["pdf"]
    if head.startswith(b"PK\x03\x04"):
        return _zipped(content)
    if head.startswith(_OLE):
        raise DocumentError(
            "It is an Office file from before 2007, or one that is protected by a password.",
            subject=content.name,
            remedy="Save it without a password as .docx, .pptx or .xlsx.",
        )
    for signature, kind in _SIGNATURES:
        if head.startswith(signature) and not _is_text(head):
            raise DocumentError(f"It is {kind}, not a document.", subject=content.name, remedy="Exclude it with documents.exclude.")
    if named is not None and content.suffix and (named.name not in _BINARY or not head):
        return None
    if _HTML.match(head):
        return formats()["html"]
    return formats()[_told_by_first_line(head)]


_BINARY = ("pdf", "docx", "pptx", "xlsx")


def _is_text(head: bytes) -> bool:
    """Some signatures are letters that a text may begin with."""
    return head.isascii() and b"\x00" not in head


def _told_by_first_line(head: bytes) -> str:
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    first, _, rest = start.partition(b"\n")
    if not start.startswith((b"{", b"[")):
        return "text"
    try:
        msgspec.json.decode(first)
    except (msgspec.DecodeError, RecursionError):
        return "json" if re.match(rb'[{\[]\s*["{\[]', start) else "text"
    return "jsonl" if first.startswith(b"{") and rest.strip() else "json"


def _zipped(content: Content) -> Format:
    try:
        with content.open() as stream, zipfile.ZipFile(stream) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError) as error:
        raise DocumentError(
            f"The file is damaged: {error}.", subject=content.name, remedy="Get it again from where it came."
        ) from error
    for part, name in _OFFICE_PARTS:
        if part in names:
            return formats()[name]
    raise DocumentError("It is a zip archive, not a document.", subject=content.name, remedy="Unpack it and give the folder.")
