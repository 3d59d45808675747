"""Word: paragraphs and tables in order; headings, lists and links marked as in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kgrag.documents.content import Content
from kgrag.documents.encoding import clean
from kgrag.documents.parse.extras import package
from kgrag.documents.parse.formats import Parsed
from kgrag.documents.parse.office import check_archive, properties, table_lines
from kgrag.documents.settings import DocumentSettings
from kgrag.errors import DocumentError

if TYPE_CHECKING:
    from docx.document import Document as WordDocument

_HEADING = re.compile(r"(?:Heading|heading|Überschrift|Titre|Título) ?([1-9])")
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_RENDERED, _BREAK = f"{_W}lastRenderedPageBreak", f"{_W}br"


def parse(content: Content, settings: DocumentSettings) -> Iterator[Parsed]:
    docx = package("docx", "Word files")
    check_archive(content, settings)
    with content.open() as stream:
        try:
            document: WordDocument = docx.Document(stream)
        except (KeyError, ValueError, docx.opc.exceptions.PackageNotFoundError) as error:
            raise DocumentError(
                f"The file is damaged: {error}.", subject=content.name, remedy="Save it anew with its program."
            ) from error
        warnings: list[str] = []
        blocks, pages, title = _Body(document).read()
        text, notes = clean("".join(blocks))
        if notes:
            pages = [] if len(text) != len("".join(blocks)) else pages
        metadata = properties(document.core_properties, settings, warnings)
    title = str(metadata.get("title") or title)
    yield Parsed(text=text, title=title, metadata=metadata, pages=pages, warnings=[*warnings, *notes])


class _Body:
    """Collects blocks and the offsets of page starts. Pages are those Word last laid out, else the breaks set by hand."""

    def __init__(self, document: WordDocument) -> None:
        self._document = document
        self._blocks: list[str] = []
        self._length = 0
        self._title = ""
        laid_out = next(document.element.body.iter(_RENDERED), None) is not None
        self._break = _RENDERED if laid_out else _BREAK
        self._pages = [0]

    def read(self) -> tuple[list[str], list[int], str]:
        for block in self._document.iter_inner_content():
            if hasattr(block, "rows"):
                self._add("\n".join(_table(block)))
            else:
                self._paragraph(block)
        return self._blocks, self._pages if len(self._pages) > 1 else [], self._title

    def _paragraph(self, paragraph: Any) -> None:
        text, breaks = self._text(paragraph)
        style = (paragraph.style.name if paragraph.style is not None else "") or ""
        heading = _HEADING.match(style)
        if text.strip() and (style == "Title" or (heading and heading[1] == "1")):
            self._title = self._title or " ".join(text.split())
        prefix = "# " if style == "Title" else "#" * min(6, int(heading[1])) + " " if heading else ""
        if not prefix and (style.startswith("List") or (paragraph._p.pPr is not None and paragraph._p.pPr.numPr is not None)):
            prefix = "- "
        at = self._length + (2 if self._blocks else 0) + len(prefix if text.strip() else "")
        lead = len(text) - len(text.lstrip())
        self._pages += [max(self._length, at + max(0, offset - lead)) for offset in breaks]
        self._add(prefix + text.strip() if text.strip() else "")

    def _text(self, paragraph: Any) -> tuple[str, list[int]]:
        """The paragraph's text, links written out, and the offsets of page breaks in it."""
        parts: list[str] = []
        breaks: list[int] = []
        for piece in paragraph.iter_inner_content():
            for mark in piece._element.iter(self._break) if hasattr(piece, "_element") else piece._hyperlink.iter(self._break):
                if self._break == _RENDERED or mark.get(f"{_W}type") == "page":
                    breaks.append(sum(map(len, parts)))
            address = getattr(piece, "address", "")
            parts.append(f"[{piece.text}]({address})" if address and piece.text.strip() else piece.text)
        return "".join(parts), breaks

    def _add(self, block: str) -> None:
        if not block:
            return
        if self._blocks:
            self._blocks.append("\n\n")
            self._length += 2
        self._blocks.append(block)
        self._length += len(block)


def _table(table: Any) -> list[str]:
    """A cell that spans several columns or rows is written once."""
    rows = []
    seen: set[Any] = set()
    for row in table.rows:
        cells = []
        for cell in row.cells:
            if cell._tc not in seen:
                seen.add(cell._tc)
                cells.append(cell.text + "".join(" " + " ".join(_table(inner)) for inner in cell.tables))
        rows.append(cells)
    return table_lines(rows)
