"""Numbered citations: which numbers an answer uses, and what each stands for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from kgrag.records import Citation, Hit, Section

_MARK = re.compile(r"(\s*)[\[［【]\s*(\d{1,3}(?:\s*[,，、;；]\s*\d{1,3})*)\s*[\]］】]")
_OPEN = re.compile(r"\s*(?:[\[［【][\d\s,，、;；]*)?$")
_NUMBER = re.compile(r"\d+")
_LONGEST_MARK = 80


def numbered(sections: Iterable[Section]) -> list[tuple[int, Hit]]:
    """Every item with the number it is cited by: 1, 2, ... through the sections in their order."""
    return list(enumerate((hit for section in sections for hit in section.hits), 1))


def clean(text: str, known: int, used: set[int] | None = None) -> str:
    """``text`` with every citation mark holding only numbers from 1 to ``known``; a mark left without a number goes, with
    the space before it. Numbers met are added to ``used``. ``[2020]`` is no mark: numbers have at most three digits."""

    def keep(match: re.Match[str]) -> str:
        numbers = [n for n in map(int, _NUMBER.findall(match[2])) if 1 <= n <= known]
        if used is not None:
            used.update(numbers)
        return f"{match[1]}[{', '.join(map(str, numbers))}]" if numbers else ""

    return _MARK.sub(keep, text)


class CitationStream:
    """Cleans marks in text that arrives in pieces: what may still become a mark is held back until it is decided."""

    def __init__(self, known: int) -> None:
        self._known = known
        self._held = ""
        self.used: set[int] = set()

    def feed(self, piece: str) -> str:
        """What of the text so far is certain; may be empty."""
        text = self._held + piece
        opening = _OPEN.search(text)
        cut = opening.start() if opening is not None and len(text) - opening.start() <= _LONGEST_MARK else len(text)
        self._held = text[cut:]
        return clean(text[:cut], self._known, self.used)

    def end(self) -> str:
        """The rest."""
        rest, self._held = self._held, ""
        return clean(rest, self._known, self.used)


def citations(items: Sequence[tuple[int, Hit]], used: set[int], locate: Callable[[Hit], Hit | None]) -> list[Citation]:
    """One citation per used number, in order. ``locate`` gives the located text unit behind a hit: the hit itself, or the
    best text unit of its lineage; None where that is gone."""
    found: list[Citation] = []
    for number, hit in items:
        if number not in used:
            continue
        unit = locate(hit)
        found.append(
            Citation(
                number=number,
                kind=hit.kind,
                id=hit.id,
                title=hit.title or (unit.title if unit else ""),
                path=unit.path if unit else "",
                document_id=unit.document_id if unit else "",
                text_unit_id=unit.id if unit else "",
                page=unit.page if unit else None,
                row=unit.row if unit else None,
                start=unit.start if unit else None,
                end=unit.end if unit else None,
                quote=unit.text if unit else hit.text,
            )
        )
    return found
