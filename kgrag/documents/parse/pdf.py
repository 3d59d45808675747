"""PDF: the text layer, page by page. No image is decoded, so none can fill the memory."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kgrag.documents.content import Content
from kgrag.documents.encoding import clean
from kgrag.documents.parse.extras import package
from kgrag.documents.parse.formats import Parsed
from kgrag.documents.parse.pages import join_pages, reflow
from kgrag.documents.rows import fields
from kgrag.documents.settings import DocumentSettings
from kgrag.errors import DocumentError, EmptyDocumentError
from kgrag.records import Metadata

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

_FIELDS = {"/Author": "author", "/Subject": "subject", "/Keywords": "keywords"}
_GARBAGE = 0.3
_NO_TITLE = ("untitled", "untitled document", "microsoft word - ", "binder1.pdf")


def parse(content: Content, settings: DocumentSettings) -> Iterator[Parsed]:
    pypdf = package("pypdf", "PDF files")
    warnings: list[str] = []
    with content.open() as stream:
        try:
            reader: PdfReader = pypdf.PdfReader(stream, strict=False)
            if reader.is_encrypted:
                _decrypt(pypdf, reader, content, settings)
            count = len(reader.pages)
        except pypdf.errors.DependencyError as error:
            package("cryptography", "encrypted PDF files")
            raise DocumentError(f"It cannot be decrypted: {error}.", subject=content.name, remedy="Decrypt it.") from error
        except pypdf.errors.PyPdfError as error:
            raise _damaged(content, error) from error
        if count > settings.max_pages:
            raise DocumentError(
                f"The file has {count:,} pages; at most {settings.max_pages:,} are read.",
                subject=content.name,
                remedy="Split it, or raise documents.max_pages.",
            )
        pages = _pages(reader, count, content, warnings)
        text, starts = join_pages(pages)
        text = _with_form(reader, text, warnings)
        if not text.strip():
            raise EmptyDocumentError(
                "The PDF holds no text, only images or drawings.",
                subject=content.name,
                remedy="Put its text in with an OCR program first, such as ocrmypdf.",
            )
        metadata = _metadata(reader, settings, warnings)
    without = [str(n) for n, page in enumerate(pages, 1) if not page.strip()]
    if without:
        warnings.append(f"No text on {len(without)} of {count} pages ({', '.join(without[:10])}); they may be scans.")
    if _is_garbage(text):
        warnings.append("Most of its text is no words: a font may lack its table of characters. OCR may read it better.")
    yield Parsed(text=text, title=_title(metadata), metadata=metadata, pages=starts, warnings=warnings)


def _decrypt(pypdf: Any, reader: PdfReader, content: Content, settings: DocumentSettings) -> None:
    for password in ("", *(p.get_secret_value() for p in settings.passwords)):
        if reader.decrypt(password) != pypdf.PasswordType.NOT_DECRYPTED:
            return
    raise DocumentError(
        "The PDF is encrypted, and no password given opens it.",
        subject=content.name,
        remedy="Add its password to documents.passwords, or save it without one.",
    )


def _pages(reader: PdfReader, count: int, content: Content, warnings: list[str]) -> list[str]:
    found, failed = [], []
    reason: Exception | None = None
    for number in range(count):
        try:
            raw = _extracted(reader.pages[number])
        except (MemoryError, KeyboardInterrupt):
            raise
        except Exception as error:  # noqa: BLE001 pypdf fails in any way on a damaged page; the others may be whole
            failed.append(str(number + 1))
            reason, raw = error, ""
        text, notes = clean(raw)
        warnings += [f"Page {number + 1}: {note}" for note in notes]
        found.append(reflow(text))
    if reason is not None and len(failed) == count:
        raise _damaged(content, reason)
    if failed:
        warnings.append(f"Pages that cannot be read ({', '.join(failed[:10])}): {reason}")
    return found


def _extracted(page: PageObject) -> str:
    """Text in the order of the page's content stream, in which writers put one column after the other."""
    return page.extract_text() + "".join(f"\n{note}" for note in _notes(page))


def _notes(page: PageObject) -> Iterator[str]:
    """What readers wrote on the page."""
    for reference in page.annotations or ():
        annotation = reference.get_object()
        if annotation.get("/Subtype") in ("/FreeText", "/Text", "/Highlight", "/Underline") and annotation.get("/Contents"):
            yield str(annotation["/Contents"])


def _with_form(reader: PdfReader, text: str, warnings: list[str]) -> str:
    try:
        values = reader.get_form_text_fields() or {}
    except Exception as error:  # noqa: BLE001 as for pages: a damaged form must not lose the text
        warnings.append(f"Its form cannot be read: {error}")
        return text
    lines = [clean(f"{name}: {value}")[0] for name, value in values.items() if value]
    return "\n\n".join(part for part in (text, "\n".join(lines)) if part)


def _metadata(reader: PdfReader, settings: DocumentSettings, warnings: list[str]) -> Metadata:
    """Author, subject, keywords, title and dates, as far as they can be read."""
    try:
        info: Any = reader.metadata or {}
        pairs: list[tuple[str, Any]] = [(name, info.get(key)) for key, name in _FIELDS.items() if info.get(key)]
        pairs.append(("title", info.get("/Title")))
    except Exception as error:  # noqa: BLE001 as for pages
        warnings.append(f"Its metadata cannot be read: {error}")
        return {}
    for name in ("creation_date", "modification_date"):
        value = _date(info, name)
        if value is not None:
            pairs.append(("created" if name == "creation_date" else "modified", value))
    return fields(((name, " ".join(str(value).split())) for name, value in pairs if value), settings, warnings)


def _date(info: Any, name: str) -> str | None:
    try:
        value = getattr(info, name, None)
    except (ValueError, TypeError, AttributeError, IndexError):  # a damaged date
        return None
    return value.isoformat() if isinstance(value, datetime) else None


def _title(metadata: Metadata) -> str:
    title = str(metadata.get("title", ""))
    if title.lower().startswith(_NO_TITLE):
        metadata.pop("title", None)
        return ""
    return title


def _is_garbage(text: str) -> bool:
    """Glyph numbers taken for characters: few letters, or private and unassigned code points."""
    shown = [c for c in text[:20_000] if not c.isspace()]
    odd = sum(not c.isalnum() for c in shown)
    private = sum("\ue000" <= c <= "\uf8ff" or c == "\ufffd" for c in shown)
    return len(shown) > 0 and (odd > (1 - _GARBAGE) * len(shown) or private > _GARBAGE * len(shown))


def _damaged(content: Content, error: Exception) -> DocumentError:
    return DocumentError(
        f"The PDF is damaged: {str(error).rstrip('.') or type(error).__name__}.",
        subject=content.name,
        remedy="Save it anew, or repair it with qpdf or mutool.",
    )
