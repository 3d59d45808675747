"""The names of one text unit: every mention under one canonical name."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kgrag.backends.local.extractive.dates import dates
from kgrag.backends.local.extractive.lexicon import EVENT_WORDS, LAW_WORDS, ORGANIZATION_WORDS, PLACE_WORDS, WORK_WORDS
from kgrag.backends.local.extractive.names import Mention, Span, cased_mentions
from kgrag.backends.local.extractive.quoted import quoted_mentions
from kgrag.backends.local.extractive.uncased import uncased_mentions
from kgrag.function_words import language_of
from kgrag.ids import entity_key
from kgrag.text import sentences

_LOWER_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_DISAMBIGUATION = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")
_DESCRIBES = re.compile(r" (?:in|at|of|by|near|for) |^(?:List|History|Geography|Economy) ")
_IDENTIFIER = re.compile(r"[\w./\\-]*[\d_./\\][\w./\\-]*")
"""A title that is a file name, a path or a number says nothing of what the text is about."""
_PARTICIPLE = re.compile(r"(?:ing|ed)$")
_AFTER_PARTICIPLE = re.compile(r" (?:in|by|to|from|for|as|at|on|with|the|a|an|of|into|under)\b")
_BEFORE_YEAR = re.compile(r"(\w+|[^\w\s])\s*$")
_PASSING_YEAR = frozenset(["(", ",", "to", "of", "the", "–", "-", "s", ";", ")"])
_NOT_IN_PERSONS = ORGANIZATION_WORDS | PLACE_WORDS | EVENT_WORDS | WORK_WORDS | LAW_WORDS


@dataclass(slots=True)
class Found:
    """An entity: its canonical name and where it is mentioned (``mentions`` in order; none where only the title names it)."""

    name: str
    kind: str
    mentions: list[Span] = field(default_factory=list)


@dataclass(slots=True)
class Reading:
    """A text unit read: ``sentences`` are spans, ``found`` entities by their key, ``title`` the key of the title's entity or "",
    ``persons`` the keys of names that one of their words stands for elsewhere."""

    text: str
    sentences: list[Span]
    found: dict[str, Found]
    title: str
    persons: set[str]


def read(title: str, text: str) -> Reading:
    """Find the names of a text unit."""
    spans = sentences(text)
    lower = {word for word in _LOWER_WORD.findall(text) if word.islower()}
    language = language_of(lower)
    dated = dates(text, language, lower)
    quoted = quoted_mentions(text)
    names = cased_mentions(text, _first_words(text, spans), [(d.start, d.end) for d in dated], language)
    topic = _topic(title, text)
    names = [*_outside(names, quoted), *quoted]
    names += _outside(uncased_mentions(text, topic), [*names, *dated])
    found: dict[str, Found] = {}
    aliases = _Aliases(topic, names)
    for mention in names:
        if mention.kind != "weak" or _is_name(mention, text, lower, aliases.strong):
            _note(found, aliases.canonical(mention.name), mention)
    for date in dated:
        if date.kind != "range" and not _passing(text, date, names):
            _note(found, date.name, date)
    key = entity_key(topic)
    if key and key not in found:
        at = text.casefold().find(topic.casefold())
        if at >= 0:
            found[key] = Found(topic, "topic", [(at, at + len(topic))])
        elif not _DESCRIBES.search(topic) and not _IDENTIFIER.fullmatch(topic):
            found[key] = Found(topic, "topic")
    return Reading(text, spans, found, key if key in found else "", aliases.persons)


def _first_words(text: str, spans: list[Span]) -> set[int]:
    starts = set()
    for start, end in spans:
        while start < end and not text[start].isalnum():
            start += 1
        starts.add(start)
    return starts


def _outside(names: list[Mention], others: list[Mention]) -> list[Mention]:
    """The names that begin in none of the others."""
    if not names or not others:
        return names
    inside = {at for other in others for at in range(other.start, other.end)}
    return [name for name in names if name.start not in inside and name.end - 1 not in inside]


def _topic(title: str, text: str) -> str:
    """What the title names: without a disambiguation in brackets, and without what only says where it is."""
    bare = _DISAMBIGUATION.sub("", title).strip()
    if ", " in bare and bare not in text:
        first, rest = bare.split(", ", maxsplit=1)
        return f"{rest} {first}" if f"{rest} {first}" in text else first
    return bare


class _Aliases:
    """Later mentions of a person by one name stand for the full one; "Godfather" is the title's "The Godfather"."""

    def __init__(self, topic: str, names: list[Mention]) -> None:
        self.strong = {mention.name for mention in names if mention.kind != "weak"}
        self.persons: set[str] = set()
        self._full: dict[str, str] = {}
        for name in sorted(self.strong | {topic}, key=lambda name: (name != topic, name)):
            words = name.split()
            if len(words) < 2:
                continue
            self._full.setdefault(words[-1], name)
            if len(words) <= 3 and _may_be_person(words):
                self._full.setdefault(words[0], name)
        if topic.startswith("The "):
            self._full[topic[4:]] = topic

    def canonical(self, name: str) -> str:
        full = self._full.get(name)
        if full is None or full == name:
            return name
        if _may_be_person(full.split()):
            self.persons.add(entity_key(full))
        return full


def _may_be_person(words: list[str]) -> bool:
    return all(word.replace(".", "").replace("-", "").isalpha() and word.lower() not in _NOT_IN_PERSONS for word in words)


def _is_name(mention: Mention, text: str, lower: set[str], strong: set[str]) -> bool:
    """Whether a word that begins a sentence is a name: it is capitalised elsewhere, or is no word of the language."""
    name = mention.name
    if name in strong:
        return True
    if name.lower() in lower or (name.endswith("ly") and len(name) > 6):
        return False
    return not (_PARTICIPLE.search(name) and _AFTER_PARTICIPLE.match(text, mention.end))


def _passing(text: str, date: Mention, names: list[Mention]) -> bool:
    """Whether a bare year only dates the word before it, or belongs to a name."""
    if len(date.name) != 4:
        return False
    before = _BEFORE_YEAR.search(text, max(0, date.start - 12), date.start)
    if before is not None and before.group(1).lower() in _PASSING_YEAR:
        return True
    return any(n.start <= date.start < n.end for n in names)


def _note(found: dict[str, Found], name: str, mention: Mention) -> None:
    key = entity_key(name)
    if not key:
        return
    entity = found.get(key)
    if entity is None:
        entity = found[key] = Found(name, mention.kind)
    entity.mentions.append((mention.start, mention.end))
