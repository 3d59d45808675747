"""Names in scripts without capitals: Han, Kana, Hangul, and spaced scripts such as Arabic and Devanagari.

What repeats, stands in name brackets, ends like a name, or runs on in Katakana or Latin letters is taken for a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import regex

from kgrag.backends.local.extractive import lexicon

Found = tuple[str, int, int, str, float]

_BRACKETED = regex.compile(r"[《〈「『【]([^《》〈〉「」『』【】\n]{1,40})[》〉」』】]")
_KATAKANA = regex.compile(r"[\p{Katakana}ー]+(?:[・＝=][\p{Katakana}ー]+)*(?:\p{Han}{1,4})?")
_HAN = regex.compile(r"\p{Han}{2,}")
_HANGUL = regex.compile(r"\p{Hangul}{2,}")
_SPACED = regex.compile(r"[\p{Arabic}\p{Devanagari}\p{Hebrew}\p{Bengali}\p{Tamil}\p{Telugu}\p{Georgian}\p{Ethiopic}\p{M}]{3,}")
_UNSPACED = regex.compile(r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{M}]{4,}")
_KANA = regex.compile(r"[\p{Hiragana}\p{Katakana}]")
_STOPS = regex.compile(f"[{lexicon.HAN_STOPS}]")
_SUFFIXES = tuple((suffix, kind) for suffixes, kind in lexicon.CJK_SUFFIXES for suffix in suffixes.split())
_MOST = 12
"""Characters of the longest Han name looked for."""


def dense_names(text: str) -> Iterator[Found]:
    """(name, start, end, kind, confidence) of what looks like a name; overlaps are left to the caller."""
    for match in _BRACKETED.finditer(text):
        yield match[1], match.start(1), match.end(1), "work", 8.0
    japanese = _KANA.search(text) is not None
    if japanese:
        for match in _KATAKANA.finditer(text):
            if len(match.group()) >= 3:
                yield match.group(), match.start(), match.end(), "", 7.0
    yield from _han(text, japanese)
    yield from _hangul(text)
    yield from _repeated_words(text)
    yield from _repeated_runs(text)


def _han(text: str, japanese: bool) -> Iterator[Found]:
    pieces = [(piece, at) for match in _HAN.finditer(text) for piece, at in _cut(match.group(), match.start())]
    seen = Counter(piece for piece, _ in pieces)
    whole = "\n".join(piece for piece, _ in pieces)
    for piece, at in pieces:
        kind = _kind(piece)
        repeated = seen[piece] > 1 or (len(piece) >= 3 and whole.count(piece) > 1)
        if len(piece) <= _MOST and (kind or repeated or (japanese and len(piece) >= 3)):
            yield piece, at, at + len(piece), kind, 7.0 if kind else 6.0 if repeated else 5.0
        elif len(piece) > 4:
            yield from _inside(piece, at, whole)


def _cut(run: str, start: int) -> Iterator[tuple[str, int]]:
    at = 0
    for match in _STOPS.finditer(run):
        if match.start() - at > 1:
            yield run[at : match.start()], start + at
        at = match.end()
    if len(run) - at > 1:
        yield run[at:], start + at


def _inside(piece: str, at: int, whole: str) -> Iterator[Found]:
    """The longest part of a long run of Han that occurs elsewhere too."""
    place = 0
    while place < len(piece) - 1:
        length = min(_MOST, len(piece) - place)
        while length >= 3 and whole.count(piece[place : place + length]) < 2:
            length -= 1
        if length >= 3:
            name = piece[place : place + length]
            yield name, at + place, at + place + length, _kind(name), 5.0
            place += length
        else:
            place += 1


def _hangul(text: str) -> Iterator[Found]:
    stems: list[tuple[str, int, str]] = []
    for match in _HANGUL.finditer(text):
        stem, particle = _without_particle(match.group())
        stems.append((stem, match.start(), particle))
    seen = Counter(stem for stem, _, _ in stems)
    for stem, at, particle in stems:
        kind = _kind(stem)
        if len(stem) >= 2 and (seen[stem] > 1 or kind or (particle in ("은", "는", "의", "에", "에서") and len(stem) >= 3)):
            yield stem, at, at + len(stem), kind, 6.0 if seen[stem] > 1 or kind else 5.0


def _without_particle(word: str) -> tuple[str, str]:
    for particle in lexicon.PARTICLES:
        if word.endswith(particle) and len(word) - len(particle) >= 2:
            return word[: -len(particle)], particle
    return word, ""


def _repeated_words(text: str) -> Iterator[Found]:
    """Words of a spaced script without capitals that come back, joined where they come back together."""
    found = [(match.group(), match.start(), match.end()) for match in _SPACED.finditer(text)]
    seen = Counter(word for word, _, _ in found)
    pairs = Counter((a[0], b[0]) for a, b in pairwise(found) if b[1] - a[2] == 1)
    i = 0
    while i < len(found):
        word, start, end = found[i]
        if i + 1 < len(found) and pairs[word, found[i + 1][0]] > 1:
            yield text[start : found[i + 1][2]], start, found[i + 1][2], "", 6.0
            i += 2
            continue
        if seen[word] > 1 and len(word) > 3:
            yield word, start, end, "", 5.0
        i += 1


def _repeated_runs(text: str) -> Iterator[Found]:
    """Stretches of an unspaced script other than Han that come back."""
    runs = [(match.group(), match.start()) for match in _UNSPACED.finditer(text)]
    whole = "\n".join(run for run, _ in runs)
    for run, at in runs:
        if len(run) <= 24 and whole.count(run) > 1:
            yield run, at, at + len(run), "", 6.0
            continue
        place = 0
        while place <= len(run) - 5:
            length = min(20, len(run) - place)
            while length >= 5 and whole.count(run[place : place + length]) < 2:
                length -= 1
            if length >= 5:
                yield run[place : place + length], at + place, at + place + length, "", 5.0
                place += length
            else:
                place += 1


def _kind(name: str) -> str:
    for suffix, kind in _SUFFIXES:
        if name.endswith(suffix) and len(name) > len(suffix):
            return kind
    return ""
