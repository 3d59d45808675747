"""PowerPoint: a page a slide, with its tables and speaker notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kgrag.documents.content import Content
from kgrag.documents.encoding import clean
from kgrag.documents.parse.extras import package
from kgrag.documents.parse.formats import Parsed
from kgrag.documents.parse.office import check_archive, properties, table_lines
from kgrag.documents.parse.pages import join_pages
from kgrag.documents.settings import DocumentSettings
from kgrag.errors import DocumentError


def parse(content: Content, settings: DocumentSettings) -> Iterator[Parsed]:
    pptx = package("pptx", "PowerPoint files")
    check_archive(content, settings)
    with content.open() as stream:
        try:
            deck = pptx.Presentation(stream)
        except (KeyError, ValueError, pptx.exc.PackageNotFoundError) as error:
            raise DocumentError(
                f"The file is damaged: {error}.", subject=content.name, remedy="Save it anew with its program."
            ) from error
        if len(deck.slides) > settings.max_pages:
            raise DocumentError(
                f"The file has {len(deck.slides):,} slides; at most {settings.max_pages:,} are read.",
                subject=content.name,
                remedy="Split it, or raise documents.max_pages.",
            )
        warnings: list[str] = []
        slides = []
        for number, slide in enumerate(deck.slides, 1):
            text, notes = clean("\n".join(_slide(slide)))
            slides.append(text)
            warnings += [f"Slide {number}: {note}" for note in notes]
        metadata = properties(deck.core_properties, settings, warnings)
        title = "" if metadata.get("title") == "PowerPoint Presentation" else str(metadata.get("title", ""))
        title = title or next((t for t in map(_title, deck.slides) if t), "")
    text, starts = join_pages(slides)
    yield Parsed(
        text=text, title=title, metadata={**metadata, "title": title} if title else metadata, pages=starts, warnings=warnings
    )


def _slide(slide: Any) -> Iterator[str]:
    title = slide.shapes.title
    if title is not None and title.text_frame.text.strip():
        yield f"# {' '.join(title.text_frame.text.split())}"
    for shape in _shapes(slide.shapes):
        if title is not None and shape.shape_id == title.shape_id:
            continue
        if getattr(shape, "has_table", False) and shape.has_table:
            yield "\n".join(table_lines([[cell.text for cell in row.cells] for row in shape.table.rows]))
        elif shape.has_text_frame:
            yield from filter(None, (_paragraph(p) for p in shape.text_frame.paragraphs))
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        notes = slide.notes_slide.notes_text_frame.text.strip()
        if notes:
            yield f"\n{notes}"


def _shapes(shapes: Any) -> Iterator[Any]:
    """Shapes from top to bottom, those of groups in place."""
    waiting = _placed(shapes)[::-1]
    while waiting:
        shape = waiting.pop()
        if hasattr(shape, "shapes"):
            waiting += _placed(shape.shapes)[::-1]
        else:
            yield shape


def _placed(shapes: Any) -> list[Any]:
    return sorted(shapes, key=lambda s: (s.top or 0, s.left or 0))


def _paragraph(paragraph: Any) -> str:
    parts = []
    for run in paragraph.runs:
        address = run.hyperlink.address
        parts.append(f"[{run.text}]({address})" if address and run.text.strip() else run.text)
    text = "".join(parts) if parts else paragraph.text
    return f"{'  ' * paragraph.level}- {text.strip()}" if paragraph.level and text.strip() else text.strip()


def _title(slide: Any) -> str:
    title = slide.shapes.title
    return " ".join(title.text_frame.text.split()) if title is not None else ""
