"""A document's text to text units, cut where the content says so.

Cuts fall between sentences (a longer one is cut between words, or characters where it has no spaces). Each place between
two sentences has a rank: before a heading, between paragraphs, after a sentence, between lines, and among equals a hash of
the characters around it. A cut is made where no place within ``w`` tokens ranks higher; what is then still longer than a
unit may be is cut at its highest place again. All of that looks at most a few units far, so an edit moves the cuts around it
and no others, and with ids made of content (``ids.text_unit_id``) all other units stay as they are. It is the local-maximum
variant of content-defined chunking (Bjørner, Blass, Gurevich 2010), on sentences instead of bytes.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from kgrag.ids import text_unit_id
from kgrag.records import Document, Span, TextUnit
from kgrag.section import Section
from kgrag.text import count_tokens, sentences

_SPACING = 0.4
"""``w`` as a share of a unit: cuts are ``2 w`` apart on average, and a gap longer than a unit has room for a cut."""

_CONTEXT = 24
"""Characters on either side of a place that make its hash."""

_AFTER_HEADING, _WITHIN, _LINE, _SENTENCE, _PARAGRAPH, _HEADING = range(-1, 5)
_heading = re.compile(r"(#{1,6})[ \t]+\S")
_FENCES = ("```", "~~~")
_ENDS = frozenset(".!?…。！？｡؟۔।॥።:;；：")
_CLOSERS = "\"'”’»」』）)]】》〉*_`"


class ChunkSettings(Section):
    """How long text units are, in estimated tokens (``text.count_tokens``).

    480 by default, where peers take 1200 with an overlap of 100: a unit then fits the 512 tokens that small embedding
    models read, so that all of it can be found; a passage of that length is what a citation can point to; and models find
    about twice as many entities per token in short units as in long ones (Edge et al. 2024, figure 3: 600 against 2,400).
    The price is more calls of extraction, each with less text."""

    max_tokens: int = Field(default=480, ge=32)
    """The most tokens of a unit, its overlap included. Units have about 0.6 of it on average."""

    overlap_tokens: int = Field(default=48, ge=0)
    """The most tokens of whole sentences that a unit repeats from the one before; none are repeated across a heading."""

    @model_validator(mode="after")
    def _overlap_is_smaller(self) -> ChunkSettings:
        if self.overlap_tokens > self.max_tokens // 2:
            raise ValueError("chunk.overlap_tokens must be at most half of chunk.max_tokens")
        return self


def chunk(document: Document, settings: ChunkSettings) -> list[tuple[TextUnit, Span]]:
    """The document's text units in order, with where they stand: ``document.text[span.start:span.end] == unit.text``.
    Every character but white space is in one; none is empty or longer than ``max_tokens``."""
    text = document.text
    metadata = {**document.metadata, "document_id": document.id, "path": document.path}
    occurrences: Counter[str] = Counter()
    found = []
    for start, end in _spans(text, settings):
        passage = text[start:end]
        occurrences[passage] += 1
        unit = TextUnit(
            id=text_unit_id(document.id, passage, occurrences[passage]),
            document_id=document.id,
            title=document.title,
            text=passage,
            tokens=count_tokens(passage),
            metadata=metadata,
        )
        found.append((unit, Span(unit_id=unit.id, start=start, end=end)))
    return found


def _spans(text: str, settings: ChunkSettings) -> Iterator[tuple[int, int]]:
    end = len(text.rstrip())
    start = end - len(text[:end].lstrip())
    if start >= end:
        return
    if count_tokens(text[start:end]) <= settings.max_tokens:
        yield start, end
        return
    longest = settings.max_tokens - settings.overlap_tokens
    spacing = int(longest * _SPACING)
    atoms = list(_atoms(text, max(1, spacing // 2)))
    at = _positions(text, atoms)
    levels, ranks = _places(text, atoms)
    cuts = _cuts(at, ranks, spacing, longest)
    for before, first, last in zip([0, *cuts], cuts, cuts[1:], strict=False):
        begin = first
        if levels[first] < _HEADING:
            floor = max(at[first] - settings.overlap_tokens, at[before])
            reach = first
            while reach > 0 and at[reach - 1] >= floor:
                reach -= 1
                begin = reach if levels[reach] >= _LINE else begin
        yield atoms[begin][0], atoms[last - 1][1]


# ---------------------------------------------------------------- sentences and their parts


def _atoms(text: str, most: int) -> Iterator[tuple[int, int]]:
    """Sentences, and parts of at most ``most`` tokens of longer ones."""
    for start, end in sentences(text):
        if end - start <= most or count_tokens(text[start:end]) <= most:
            yield start, end
        else:
            yield from _parts(text, start, end, most)


def _parts(text: str, start: int, end: int, most: int) -> Iterator[tuple[int, int]]:
    """About eight words each, cut by content so that a word more or less moves no other part."""
    codes = np.frombuffer(text[start:end].encode("utf-32-le", "surrogatepass"), dtype="<u4")
    mixed = _mixed(codes)
    words = _word_starts(codes)
    places = np.flatnonzero(words & (mixed % 8 == 0))
    starts = [0, *places.tolist(), end - start]
    for a, b in pairwise(starts):
        if b - a <= most or count_tokens(text[start + a : start + b]) <= most:
            yield from _trimmed(text, start + a, start + b)
        else:
            yield from _pieces(text, start, a, b, words, mixed, most)


def _pieces(
    text: str, start: int, a: int, b: int, words: NDArray[np.bool_], mixed: NDArray[np.uint32], most: int
) -> Iterator[tuple[int, int]]:
    """At most ``most`` characters each: cut before a word where one begins, else by content, else anywhere."""
    spaces = (np.flatnonzero(words[a:b]) + a).tolist()
    others = (np.flatnonzero(mixed[a:b] % 16 == 0) + a).tolist()
    s = o = 0
    while b - a > most:
        cut, s = _last_within(spaces, s, a, a + most)
        if not cut:
            cut, o = _last_within(others, o, a, a + most)
        cut = _whole_character(text, start, cut or a + most, b)
        yield from _trimmed(text, start + a, start + cut)
        a = cut
    yield from _trimmed(text, start + a, start + b)


def _last_within(places: Sequence[int], at: int, after: int, until: int) -> tuple[int, int]:
    """The last place in ``(after, until]`` (0: none), and where to go on."""
    found = 0
    while at < len(places) and places[at] <= until:
        found = places[at] if places[at] > after else 0
        at += 1
    return found, at


def _whole_character(text: str, start: int, cut: int, end: int) -> int:
    """``cut`` moved on past combining marks and joiners, which belong to the character before."""
    for place in range(cut, min(cut + 32, end)):
        if (
            text[start + place] != "\u200d"
            and text[start + place - 1] != "\u200d"
            and unicodedata.category(text[start + place])[0] != "M"
        ):
            return place
    return cut


def _mixed(codes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """A hash of the characters around each place."""
    mixed = codes * np.uint32(2654435761)
    for distance, factor in ((1, 2246822519), (2, 3266489917), (3, 668265263)):
        mixed[distance:] ^= codes[:-distance] * np.uint32(factor)
    mixed ^= mixed >> np.uint32(15)
    mixed *= np.uint32(2246822519)
    return mixed ^ (mixed >> np.uint32(13))


def _word_starts(codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
    space = (codes == 32) | (codes == 9) | (codes == 10) | (codes == 0xA0) | (codes == 0x3000)
    starts = np.zeros(len(codes), dtype=np.bool_)
    starts[1:] = space[:-1] & ~space[1:]
    return starts


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    bare = piece.strip()
    if bare:
        start += len(piece) - len(piece.lstrip())
        yield start, start + len(bare)


# ---------------------------------------------------------------- places to cut


def _positions(text: str, atoms: Sequence[tuple[int, int]]) -> list[int]:
    """Tokens before each atom, and in all; white space counts with the atom before it. Never less than the tokens of the text
    between, since each atom is rounded up."""
    at = [0]
    for place, (start, end) in enumerate(atoms):
        until = atoms[place + 1][0] if place + 1 < len(atoms) else end
        at.append(at[-1] + count_tokens(text[start:until]))
    return at


def _places(text: str, atoms: Sequence[tuple[int, int]]) -> tuple[list[int], list[tuple[int, int]]]:
    """The level of the place before each atom, and its rank (level, hash)."""
    levels, ranks = [_HEADING], [(_HEADING, 0)]
    fenced = text.startswith(_FENCES, atoms[0][0])
    after_heading = _heading.match(text, atoms[0][0]) is not None and not fenced
    for (_, before), (start, _) in pairwise(atoms):
        gap = text[before:start]
        lines = gap.count("\n")
        fence = lines > 0 and text.startswith(_FENCES, start)
        heading = _heading.match(text, start) if lines and not fenced else None
        depth = 0
        if after_heading:
            level = _AFTER_HEADING
        elif heading is not None:
            level, depth = _HEADING, 7 - len(heading[1])
        elif fenced:
            level = _LINE
        elif lines > 1:
            level = _PARAGRAPH
        elif _ends_sentence(text, before):
            level = _SENTENCE
        else:
            level = _LINE if lines else _WITHIN
        around = text[max(0, before - _CONTEXT) : before] + "\n" + text[start : start + _CONTEXT]
        levels.append(level)
        ranks.append((level + depth, crc32(around.encode("utf-8", "surrogatepass"))))
        after_heading = heading is not None or (after_heading and not lines)
        fenced ^= fence
    return levels, ranks


def _ends_sentence(text: str, end: int) -> bool:
    while end > 0 and text[end - 1] in _CLOSERS:
        end -= 1
    return end > 0 and text[end - 1] in _ENDS


def _cuts(at: Sequence[int], ranks: Sequence[tuple[int, int]], spacing: int, longest: int) -> list[int]:
    """The atoms at which units begin, and the number of atoms."""
    count = len(ranks)
    cuts = [0]
    for place in _peaks(at, ranks, spacing):
        _divide(cuts, place, at, ranks, spacing, longest)
        cuts.append(place)
    _divide(cuts, count, at, ranks, spacing, longest)
    cuts.append(count)
    return cuts


def _peaks(at: Sequence[int], ranks: Sequence[tuple[int, int]], spacing: int) -> list[int]:
    """Places that outrank all others within ``spacing`` tokens and are as far from both ends of the text."""
    count = len(ranks)
    left = [0] * count
    right = [count] * count
    stack: list[int] = []
    for place in range(1, count):
        while stack and ranks[stack[-1]] < ranks[place]:
            right[stack.pop()] = place
        left[place] = stack[-1] if stack else 0
        stack.append(place)
    return [p for p in range(1, count) if at[p] - at[left[p]] >= spacing and at[right[p]] - at[p] >= spacing]


def _divide(cuts: list[int], end: int, at: Sequence[int], ranks: Sequence[tuple[int, int]], spacing: int, longest: int) -> None:
    """Adds cuts from the last one on until what is left before ``end`` is no longer than a unit."""
    while at[end] - at[cuts[-1]] > longest:
        begin = cuts[-1]
        best = last = begin + 1
        best_rank = (-2, 0)
        place = begin + 1
        while place < end and at[place] - at[begin] <= longest:
            last = place
            if at[place] - at[begin] >= spacing and at[end] - at[place] >= spacing and ranks[place] >= best_rank:
                best, best_rank = place, ranks[place]
            place += 1
        cuts.append(best if best_rank[0] > -2 else last)
