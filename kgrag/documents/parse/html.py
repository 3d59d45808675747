"""HTML: what a browser would show, with headings, lists and tables marked as in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kgrag.documents.content import Content
from kgrag.documents.encoding import clean, decode, find_encoding
from kgrag.documents.parse.extras import package
from kgrag.documents.parse.formats import Parsed
from kgrag.documents.rows import fields
from kgrag.documents.settings import DocumentSettings
from kgrag.errors import DocumentError

_DROPPED = frozenset(
    [
        "script",
        "style",
        "noscript",
        "template",
        "iframe",
        "object",
        "embed",
        "svg",
        "math",
        "canvas",
        "audio",
        "video",
        "select",
        "option",
        "button",
        "nav",
        "dialog",
        "head",
    ]
)
_BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "center",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "header",
        "hgroup",
        "hr",
        "li",
        "main",
        "ol",
        "p",
        "pre",
        "section",
        "summary",
        "table",
        "tbody",
        "thead",
        "tfoot",
        "tr",
        "ul",
        "caption",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
    ]
)
_HEADINGS = {f"h{n}": "#" * n + " " for n in range(1, 7)}
_META = {
    "author": "author", "description": "description", "keywords": "keywords", "date": "date", "dc.date": "date",
    "article:published_time": "date", "article:author": "author", "og:site_name": "site",
}  # fmt: skip
_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*>")
_SPACES = re.compile(r"[ \t\r\f\v\n\u00a0]+")
_BREAKS = re.compile(r"\n{3,}")


def parse(content: Content, settings: DocumentSettings) -> Iterator[Parsed]:
    html = package("lxml.html", "HTML files")
    raw, warnings = decode(content, settings.encoding or _declared(content))
    text, notes = clean(_DECLARATION.sub("", raw))
    warnings += notes
    if not text.strip():
        return
    parser = html.HTMLParser(huge_tree=True, remove_comments=True, remove_pis=True)
    try:
        root = html.document_fromstring(text, parser=parser)
    except html.etree.ParserError as error:
        raise DocumentError(f"The page cannot be read: {error}.", subject=content.name, remedy="Correct it.") from error
    fatal = next((entry for entry in parser.error_log if entry.level_name == "FATAL"), None)
    if fatal is not None:  # what follows would be missing without a word
        reason = "it is nested too deeply" if "depth" in fatal.message else fatal.message
        raise DocumentError(f"The page cannot be read: {reason}.", subject=content.name, remedy="Save it anew as text.")
    metadata = fields(_meta(root), settings, warnings)
    body, heading = _Text().read(root)
    body, notes = clean(body)
    title = _line(root.findtext(".//title") or "") or heading
    yield Parsed(text=body, title=clean(title)[0], metadata=metadata, warnings=[*warnings, *notes])


def _declared(content: Content) -> str:
    """The encoding the page states, where its bytes agree."""
    found = _CHARSET.search(content.read(4096))
    if found is None:
        return ""
    name = found[1].decode("ascii", "replace").lower()
    name = {"iso-8859-1": "cp1252", "latin1": "cp1252", "us-ascii": "cp1252"}.get(name, name)  # as browsers read them
    try:
        if find_encoding(content).name != "utf-8" and not find_encoding(content, name).warnings:
            return name
    except DocumentError:
        return ""
    return ""


def _meta(root: Any) -> Iterator[tuple[str, str]]:
    seen = set()
    for element in root.iter("meta"):
        name = _META.get((element.get("name") or element.get("property") or "").lower())
        value = _line(element.get("content") or "")
        if name and value and name not in seen:
            seen.add(name)
            yield name, value
    language = root.get("lang")
    if language:
        yield "language", language


class _Text:
    """Walks a page without recursion: it may be nested as deep as someone likes."""

    def __init__(self) -> None:
        self._out: list[str] = []
        self._heading = ""
        self._pre = 0

    def read(self, root: Any) -> tuple[str, str]:
        """The text, and the first heading of the first level."""
        waiting: list[tuple[Any, bool]] = [(root, False)]
        while waiting:
            element, done = waiting.pop()
            tag = element.tag
            if done:
                self._close(tag)
                self._add(element.tail)
            elif tag in _DROPPED or element.get("hidden") is not None:
                self._add(element.tail)
            else:
                self._open(element, tag)
                self._add(element.text)
                waiting.append((element, True))
                waiting += [(child, False) for child in reversed(element)]
        lines = (_line(line) if not line.startswith("\x00") else line[1:].rstrip() for line in "".join(self._out).split("\n"))
        return _BREAKS.sub("\n\n", "\n".join(lines)).strip(), self._heading

    def _open(self, element: Any, tag: str) -> None:
        if tag in _HEADINGS:
            if tag == "h1" and not self._heading:
                self._heading = _line("".join(element.itertext()))
            self._out.append("\n\n" + _HEADINGS[tag])
        elif tag in ("td", "th"):
            self._out.append(" | ")
        elif tag == "li":
            self._out.append("\n- ")
        elif tag in ("tr", "dt", "dd", "caption") or tag == "br":
            self._out.append("\n")
        elif tag == "pre":
            self._pre += 1
            self._out.append("\n\n")
        elif tag == "img" and _line(element.get("alt") or ""):
            self._out.append(f" {_line(element.get('alt'))} ")
        elif tag in _BLOCKS:
            self._out.append("\n\n" if tag not in ("ul", "ol", "tbody", "thead", "tfoot") else "\n")

    def _close(self, tag: str) -> None:
        if tag == "tr":
            self._out.append(" |")
        elif tag == "pre":
            self._pre -= 1
            self._out.append("\n\n")
        elif tag in _BLOCKS and tag not in ("li", "dt", "dd", "tbody", "thead", "tfoot"):
            self._out.append("\n\n")

    def _add(self, text: str | None) -> None:
        if text:
            self._out.append(text.replace("\n", "\n\x00") if self._pre else _SPACES.sub(" ", text))


def _line(text: str) -> str:
    return " ".join(text.split())
