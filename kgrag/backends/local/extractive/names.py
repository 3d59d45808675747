"""Names in scripts that have capitals (Latin, Greek, Cyrillic, Armenian): runs of capitalised words.

No dictionary of names and no model. What is capitalised inside a sentence is a name; at its start it is one where the word is
no function word. Which small words join two capitalised ones ("University of Utah", "Vasco da Gama") is a table.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache
from typing import NamedTuple

from kgrag.backends.local.extractive.lexicon import (
    ABBREVIATED,
    CALENDAR,
    EVENT_WORDS,
    LAW_WORDS,
    LEGAL_FORMS,
    OPENERS,
    opening_words,
)

Span = tuple[int, int]


class Mention(NamedTuple):
    """A name as it stands in a text at ``[start, end)``. ``kind``: ``name``, ``date``, ``quoted``, ``term`` (a name of a script
    without capitals), or ``weak``, a single word that may be capitalised only because a sentence begins there."""

    name: str
    start: int
    end: int
    kind: str = "name"


CASED = r"A-Za-z\u00aa\u00ba\u00c0-\u024f\u0250-\u02af\u0300-\u0589\u1e00-\u1fff"
"""Letters of the scripts that have capitals, as the inside of a regular expression's class."""


@cache
def capitals() -> str:
    """Capital letters, as the inside of a regular expression's class."""
    ranges: list[list[int]] = []
    for code in (*range(0x41, 0x5B), *range(0xC0, 0x590), *range(0x1E00, 0x2000)):
        char = chr(code)
        if char.isupper() or char.istitle():
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"{chr(a)}-{chr(b)}" for a, b in ranges)


@cache
def _capital_word() -> re.Pattern[str]:
    """A capitalised word, or a whole number, which may be part of a name. Hyphens, apostrophes, dots and ampersands between
    letters belong to the word."""
    word = rf"[{CASED}0-9]"
    inner = rf"(?:['’.&/+‐–-]?{word})*"
    return re.compile(rf"(?<![{CASED}0-9_'’])(?:[{capitals()}]{inner}\+*|[a-z]{{1,2}}[A-Z]{inner}|\d+(?:st|nd|rd|th)?)(?!{word})")


_WORD, _OF, _OF_THE, _THE, _PARTICLE, _STOP, _COMMA = range(7)
_PARTICLES = (
    "de la le du des del della dello di da do dos das van von der den ten ter zu zur am bin ibn al for"
    " van_der van_den van_de von_der von_dem an_der de_la de_las de_los"
)
_JOINING: dict[str, int] = (
    dict.fromkeys([" ", "\n", " - ", " & ", " + ", " -- ", "--", "-", " d'", " d’", " al-", " el-"], _WORD)
    | {f" {particle.replace('_', ' ')} ": _PARTICLE for particle in _PARTICLES.split()}
    | {" of ": _OF, " of the ": _OF_THE, " the ": _THE, ". ": _STOP, ".": _STOP, ", ": _COMMA}
)
_INITIALS = re.compile(r"\w(?:\.\w)*")
_NUMERAL = re.compile(r"[IVX]+")
_POSSESSIVE = re.compile(r"['’]s?$")
_POSSESSOR = re.compile(r"['’]s ")
_YEAR_BEFORE = re.compile(r"(?<!\d)\d{4} $")
_YEAR_AFTER = re.compile(r" \d{4}(?![\d–-]|[,.]\d)")
_LONGEST_NUMBER = 4
_VERB = re.compile(r"(?:[iI]?ó|aron|ieron|ou|aram|eram|ò|arono|erono)$")
"""A verb that begins a sentence of a language that leaves out pronouns ("Publicó", "Nasceu")."""
_PAST = re.compile(r"(?:ió|aron|ieron)$")
_CYRILLIC_ADJECTIVE = re.compile(r"[А-ЯЁІЇЄ][^\W\d_]*(?:ский|ская|ское|ском|ского|скому|ской|скую|ским|ние|ный|ная|ное)$")
_AFTER_ADJECTIVE = re.compile(r"(?: [а-яёіїє]{4,}(?:ом|ого|ый|ий|ая|ое|ной|ную))? [а-яёіїє]{4,}")
"""What a Russian proper adjective belongs to: "Московский университет"."""
_LOWER_BEFORE = re.compile(r"(\w+)\s$")
_GERMAN_INFLECTED = re.compile(
    r"(?:\w\w(?:e|en|er|es|em)|das|ein|kein|sein|ihr|mein|unser|zum|zur|beim|viel|zwei|drei|vier|pro|als)$"
)
_GERMAN_ABSTRACT = re.compile(r"\w(?:ung|heit|keit|schaft|tion|tät|ismus|ungen|heiten|keiten|schaften|tionen|täten|innen)$")


def cased_mentions(text: str, starts: Collection[int], dates: Sequence[Span], language: str) -> list[Mention]:
    """Names in order of their place. ``starts`` are the offsets of first words of sentences, ``dates`` spans to leave out."""
    function_words = opening_words(language)
    found: list[Mention] = []
    for run in _runs(text, starts, dates, function_words):
        mention = _name(text, run, starts, function_words)
        if mention is not None and not (language == "de" and _is_german_noun(text, mention)):
            found.append(mention)
    return _without_possessors(found)


def _runs(text: str, starts: Collection[int], dates: Sequence[Span], function_words: Collection[str]) -> list[list[Span]]:
    runs: list[list[Span]] = []
    run: list[Span] = []
    rest = iter([*dates, (len(text) + 1, len(text) + 1)])
    date = next(rest)
    for found in _capital_word().finditer(text):
        start, end = found.span()
        while date[1] <= start:
            date = next(rest)
        if start >= date[0]:
            continue
        if run and start not in starts and _joins(text, run, start, end, function_words):
            run.append((start, end))
            continue
        if run:
            runs.append(run)
        run = [(start, end)]
    if run:
        runs.append(run)
    return runs


def _joins(text: str, run: list[Span], start: int, end: int, function_words: Collection[str]) -> bool:
    """Whether the word at ``[start, end)`` goes on the run before it."""
    last_start, last_end = run[-1]
    kind = _JOINING.get(text[last_end:start])
    if kind is None:
        return False
    is_number = text[start].isdigit()
    if kind == _WORD:
        if is_number:
            return end - start <= _LONGEST_NUMBER and not text[last_start].isdigit()
        if _NUMERAL.fullmatch(text, start, end):
            return True
        return not _is_function(text[start:end], function_words) or _is_function(text[last_start:last_end], function_words)
    if kind == _STOP:
        last = text[last_start:last_end]
        return not is_number and text[start:end].lower() not in OPENERS and (last in ABBREVIATED or bool(_INITIALS.fullmatch(last)))
    if kind == _COMMA:
        return text[start:end] in LEGAL_FORMS
    if is_number or text[last_start].isdigit():
        return False
    if kind == _OF_THE:
        return len(run) == 1
    return kind != _THE or not _is_function(text[last_start:last_end], function_words)


def _is_function(word: str, function_words: Collection[str]) -> bool:
    return word.lower() in function_words and not (len(word) > 1 and word.isupper())


def _name(text: str, run: list[Span], starts: Collection[int], function_words: Collection[str]) -> Mention | None:
    """The name of a run without the function words and numbers it begins with; None where nothing is left."""
    first = 0
    at_start = run[0][0] in starts
    for first, (start, end) in enumerate(run):
        word = text[start:end]
        article = word in ("The", "A", "An") and first + 1 < len(run) and not at_start
        verb = first == 0 and at_start and len(run) > 1 and _VERB.search(word)
        if not (word.isdigit() or verb or (_is_function(word, function_words) and not article)):
            break
    else:
        return None
    start, end = run[first][0], run[-1][1]
    last = text[run[-1][0] : end].lower()
    if last in EVENT_WORDS and _YEAR_BEFORE.search(text, max(0, start - 6), start):
        start -= 5
    elif (last in EVENT_WORDS or last in LAW_WORDS) and _YEAR_AFTER.match(text, end):
        end += 5
    name = _POSSESSIVE.sub("", text[start:end])
    if len(name) < 2 or name.lower() in CALENDAR or (name[0].isdigit() and " " not in name):
        return None
    weak = at_start and first == 0 and len(run) == 1
    if weak and _PAST.search(name):
        return None
    if end - start == len(name) and (noun := _AFTER_ADJECTIVE.match(text, end)) and _CYRILLIC_ADJECTIVE.search(name):
        name += noun.group()
    return Mention(name, start, start + len(name), "weak" if weak else "name")


def _is_german_noun(text: str, mention: Mention) -> bool:
    """German capitalises every noun. A single one behind an article or adjective, or with the ending of an abstract noun, is
    no name."""
    name = mention.name
    if " " in name or name.isupper():
        return False
    before = _LOWER_BEFORE.search(text, max(0, mention.start - 24), mention.start)
    return bool(_GERMAN_ABSTRACT.search(name)) or (before is not None and bool(_GERMAN_INFLECTED.search(before.group(1).lower())))


def _without_possessors(found: list[Mention]) -> list[Mention]:
    """ "Philip Sheridan's Campaigns" is two names, but "King's College" one: a possessor is a name of its own where it has
    several words or stands alone elsewhere too."""
    known = {mention.name for mention in found}
    out: list[Mention] = []
    for mention in found:
        mark = _POSSESSOR.search(mention.name)
        if mark is not None:
            owner, owned = mention.name[: mark.start()], mention.name[mark.end() :]
            if (" " in owner or owner in known) and owned:
                out.append(mention._replace(name=owner, end=mention.start + mark.start()))
                out.append(mention._replace(name=owned, start=mention.start + mark.end()))
                continue
        out.append(mention)
    return out
