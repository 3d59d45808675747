"""Names in a text, in scripts with capitals and without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import regex

from kgrag.backends.local.extractive import lexicon
from kgrag.backends.local.extractive.dense import dense_names
from kgrag.text import sentences

_CAPITAL = r"(?:(?:(?:St|Mt|Ft|Dr|Mrs?|Ms|Prof|Lt|Col|Gen|Capt|Rev|Ste)\.[ ])?(?:\p{Lu}\.(?:\s?\p{Lu}\.)*|[\p{Lu}][\p{L}\p{M}\p{N}’']*(?:[.&/+-](?=[\p{L}\p{N}])[\p{L}\p{M}\p{N}’']+)*\+*#?|\d+[A-Z][\p{L}\p{N}-]*))"
_RUN = regex.compile(
    rf"(?:(?<!\p{{N}}[ -])(?:1\d{{3}}|20\d\d|\d+(?:st|nd|rd|th))[ ])?{_CAPITAL}"
    rf"(?:(?:[ ](?:{lexicon.CONNECTORS})[ ]|[ ]?&[ ]?|[ ]|[ ]?[–-][ ]?)(?:{_CAPITAL}))*"
    r"(?:[ ](?:\d{1,3}|[IVX]+)(?!\p{N}|[.,]\d|[ ]?(?:%|percent|million|billion)))?"
)
_DATE = regex.compile(
    rf"(?:(?:{lexicon.MONTHS})[ ]\d{{1,2}}(?:,?[ ]\d{{4}})?|(?:\d{{1,2}}\.?[ ](?:de[ ])?)?(?:{lexicon.MONTHS})(?:[ ](?:de[ ])?\d{{4}})|\d{{1,2}}\.?[ ](?:{lexicon.MONTHS}))(?!\w)"
    r"|\d{4}-\d{2}-\d{2}|\b(?:1\d{3}|20\d\d)s?\b(?![,.]\d)|\b\d{1,2}(?:st|nd|rd|th)[ ]centur(?:y|ies)(?:[ ]BC)?|\d{4}年(?:\d{1,2}月)?(?:\d{1,2}日)?|\d{4}년(?:[ ]?\d{1,2}월)?(?:[ ]?\d{1,2}일)?"
)
_QUOTED = regex.compile(r"[\"“”«»]([^\"“”«»\n]{2,60})[\"“”«»]|``[ ]?([^`'\n]{2,60}?)[ ]?''")
_PARENTHESIS = regex.compile(r"[ ]*[(（][^)）]*[)）]")
_POSSESSIVE = regex.compile(r"[’']s?(?=[ ]|$)")
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+")
_NOUN_CAPITALS = frozenset(("der", "die", "das", "und", "den", "dem", "des", "eine", "einer"))
_DETERMINERS = frozenset(
    [
        "der",
        "die",
        "das",
        "den",
        "dem",
        "des",
        "ein",
        "eine",
        "einer",
        "eines",
        "einem",
        "einen",
        "im",
        "am",
        "zum",
        "zur",
        "vom",
        "ins",
        "beim",
        "jedes",
        "jede",
        "jeder",
        "diese",
        "dieser",
        "dieses",
        "sein",
        "seine",
        "seiner",
        "ihr",
        "ihre",
        "ihrer",
        "kein",
        "keine",
    ]
)
_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
_UNCASED = regex.compile(r"[\p{Arabic}\p{Devanagari}\p{Hebrew}\p{Bengali}\p{Tamil}\p{Telugu}\p{Georgian}\p{Ethiopic}]")


@dataclass(slots=True)
class Mention:
    """A name and where it stands: ``[start, end)`` in the text, ``confidence`` from 1 to 10."""

    name: str
    start: int
    end: int
    kind: str
    confidence: float


def title_name(title: str) -> str:
    """What a title names: without what stands in brackets behind it."""
    return _PARENTHESIS.sub("", title).strip(" .:-–") or title.strip()


def mentions(text: str, title: str, spans: list[tuple[int, int]] | None = None) -> list[Mention]:
    """Every mention of a name or date, in the order of the text; overlapping ones are resolved, longest first."""
    spans = sentences(text) if spans is None else spans
    found = list(_dates(text))
    found += _quoted(text)
    found += _cased(text, title, spans)
    if not text.isascii() and (_UNSPACED.search(text) or _UNCASED.search(text)):
        found += [Mention(*one) for one in dense_names(text)]
    found += _titled(text, title)
    return _resolved(found)


def _dates(text: str) -> Iterator[Mention]:
    for match in _DATE.finditer(text):
        yield Mention(match.group(), match.start(), match.end(), "date", 7.0)


def _quoted(text: str) -> Iterator[Mention]:
    for match in _QUOTED.finditer(text):
        group = 1 if match[1] else 2
        name = (match[group] or "").strip(" ,.;:!?")
        if name and name[:1].isupper() and len(name.split()) <= 8:
            start = text.index(name, match.start())
            yield Mention(name, start, start + len(name), "work", 8.0)


def _titled(text: str, title: str) -> Iterator[Mention]:
    name = title_name(title)
    if len(name) < 2:
        return
    start = text.find(name)
    while start >= 0:
        yield Mention(name, start, start + len(name), "", 10.0)
        start = text.find(name, start + len(name))


def _cased(text: str, title: str, spans: list[tuple[int, int]]) -> Iterator[Mention]:
    openings = _openings(text, spans)
    lower = Counter(word for word in _WORD.findall(text) if word[0].islower())
    nouns = sum(lower[word] for word in _NOUN_CAPITALS) * 12 > sum(lower.values())
    middle: set[str] = set()
    held: list[tuple[str, int, bool]] = []
    for match in _RUN.finditer(text):
        for name, start in _pieces(match.group(), match.start()):
            opens = start in openings
            name, start, opens = _without_opener(name, start, opens)
            if not name or (len(name) == 1) or (nouns and _common_noun(text, name, start)):
                continue
            held.append((name, start, opens))
            if not opens:
                middle.add(name)
    known = title_name(title)
    for name, start, opens in held:
        single = " " not in name
        if opens and single and name not in middle and name != known and not _looks_named(name, lower):
            continue
        if single and name[0].isupper() and lower[name.lower()] and name not in middle:
            continue
        yield Mention(name, start, start + len(name), "", 6.0 if single else 8.0)


def _openings(text: str, spans: list[tuple[int, int]]) -> set[int]:
    """Where a capital says nothing: the first letter of each sentence, quotes and brackets skipped."""
    out = set()
    for start, end in spans:
        while start < end and not text[start].isalnum():
            start += 1
        out.add(start)
    return out


def _pieces(run: str, start: int) -> Iterator[tuple[str, int]]:
    """A run of capitals cut after possessives ("Veyra's VT-7" names two things)."""
    at = 0
    for match in _POSSESSIVE.finditer(run):
        yield run[at : match.start()], start + at
        at = match.end() + 1
    if at < len(run):
        yield run[at:], start + at


def _without_opener(name: str, start: int, opens: bool) -> tuple[str, int, bool]:
    """Without function words at either end; whether what is left still stands at the opening."""
    while name:
        head, _, rest = name.partition(" ")
        if head.lower() not in lexicon.OPENERS or (rest and not opens and head[0].isupper()):
            break
        if not rest:
            return "", start, opens
        start += len(head) + 1
        name, opens = rest, False
    words = name.split(" ")
    while len(words) > 1 and words[-1].lower() in lexicon.TRAILERS:
        words.pop()
    return " ".join(words).strip("-–&’' "), start, opens


def _looks_named(name: str, lower: Counter[str]) -> bool:
    """Whether a lone capitalised word at the start of a sentence may be a name all the same."""
    if any(char.isupper() for char in name[1:]) or any(char.isdigit() for char in name):
        return True
    word = name.lower()
    return not lower[word] and not word.endswith(("ly", "ing", "ed")) and len(word) > 3


def _common_noun(text: str, name: str, start: int) -> bool:
    """In a language that capitalises nouns: a lone word behind an article or an adjective."""
    if " " in name or any(char.isdigit() or char.isupper() for char in name[1:]):
        return False
    before = text[max(0, start - 24) : start].split()
    last = before[-1] if before else ""
    return last.lower() in _DETERMINERS or (last.islower() and last.endswith(("en", "em", "er", "es", "e")) and len(last) > 4)


def _resolved(found: list[Mention]) -> list[Mention]:
    """Longest first, so that none lies inside another; a title or quote wins over a run that only overlaps it."""
    found.sort(key=lambda m: (-(m.end - m.start), -m.confidence, m.start))
    taken: list[tuple[int, int]] = []
    kept = []
    for mention in found:
        if any(mention.start < end and start < mention.end for start, end in taken):
            continue
        taken.append((mention.start, mention.end))
        kept.append(mention)
    kept.sort(key=lambda m: m.start)
    return kept
