"""Text in pages: PDF pages, slides."""

from __future__ import annotations

import re
from collections.abc import Sequence

_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]$")
_ITEM = re.compile(r"\s*(?:[-•*▪‣◦–]|\(?\d{1,3}[.)]|[a-z]\))\s")
_FULL_LINE = 0.7
"""A line reaches the margin at that share of the page's usual width; a table of contents has no such lines of prose."""

_MIN_WIDTH = 40
"""Columns of prose are at least that wide; narrower pages are lists, slides and forms, whose lines stand alone."""


def join_pages(pages: Sequence[str]) -> tuple[str, list[int]]:
    """The pages as one text, an empty line between them, and where each starts."""
    starts: list[int] = []
    parts: list[str] = []
    at = 0
    for page in pages:
        text = page.strip()
        if at and text:
            parts.append("\n\n")
            at += 2
        starts.append(at)
        parts.append(text)
        at += len(text)
    return "".join(parts), starts


def reflow(page: str) -> str:
    """A page's lines as paragraphs: a line that reaches the right margin goes on in the next one, and a word hyphenated there
    is made whole. Names and sentences would otherwise be cut wherever the page was."""
    lines = [" ".join(line.split()) for line in page.split("\n")]
    widths = sorted(_width(line) for line in lines if line)
    if len(widths) < 3 or widths[int(len(widths) * 0.9)] < _MIN_WIDTH:
        return "\n".join(lines).strip()
    full = _FULL_LINE * widths[int(len(widths) * 0.9)]
    out: list[str] = []
    goes_on = False
    for line in lines:
        if not line:
            goes_on = False
            if out and out[-1]:
                out.append("")
            continue
        if goes_on and not _ITEM.match(line):
            out[-1] = _joined(out[-1], line)
        else:
            out.append(line)
        goes_on = _width(line) >= full
    return "\n".join(out).strip()


def _width(line: str) -> int:
    return len(line) if line.isascii() else sum(2 if char >= "\u2e80" else 1 for char in line)


def _joined(before: str, line: str) -> str:
    if _HYPHEN.search(before) and line[0].islower():
        return before[:-1] + line
    if ord(before[-1]) >= 0x2E80 and ord(line[0]) >= 0x2E80 and not "\uac00" <= before[-1] <= "\ud7a3":
        return before + line  # Chinese and Japanese have no spaces between words; Korean has
    return f"{before} {line}"
