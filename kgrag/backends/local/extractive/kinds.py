"""What kind of thing a name stands for, from its form and its nearest words; no kind where neither tells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from kgrag.backends.local.extractive.lexicon import EVENT_WORDS, LAW_WORDS, ORGANIZATION_WORDS, PLACE_WORDS, ROLE_WORDS, WORK_WORDS
from kgrag.backends.local.extractive.names import Span
from kgrag.backends.local.extractive.uncased_lexicon import ENDINGS, OPENINGS
from kgrag.function_words import word_set

_LAST_WORDS = (
    (LAW_WORDS, "Law"),
    (EVENT_WORDS, "Event"),
    (ORGANIZATION_WORDS, "Organization"),
    (PLACE_WORDS, "Location"),
    (WORK_WORDS, "Product"),
)
_BEFORE = re.compile(r"([^\W\d_]+)\.?\s$")
_BORN = re.compile(
    r"\s?[(（]\s?(?:born|b\.|née?|\*|geb|nacid|род|生于|生於|\d{4}\s?[–-])|\s(?:was born|родил|nació|naquit|est née?\b|wurde [^.]{0,40}geboren)|生于|生於"
)
_PLACE_PREPOSITIONS = word_set("in near at from to around outside into through across bei nach aus à en dans près в из около")
_OF = re.compile(r" (?:of|de|der|des|del|della|di|du|da|do|für|for) ")
_SYNONYMS: dict[str, frozenset[str]] = {
    "Person": frozenset(["person", "people", "human", "人物", "人"]),
    "Organization": frozenset(["organization", "organisation", "company", "institution", "org", "组织", "機構"]),
    "Location": frozenset(["location", "place", "geo", "gpe", "country", "city", "地点", "地名"]),
    "Event": frozenset(["event", "事件"]),
    "Date": frozenset(["date", "time", "year", "日期", "时间"]),
    "Product": frozenset(["product", "work", "artifact", "creative work", "作品"]),
    "Law": frozenset(["law", "regulation", "legislation", "法律"]),
}


def entity_type(name: str, kind: str, text: str, mentions: Sequence[Span], *, person: bool) -> str:
    """Person, Organization, Location, Event, Date, Product, Law, or "". ``person``: a part of the name stands for it elsewhere."""
    if kind in ("date", "range"):
        return "Date"
    form = _by_form(name)
    if form:
        return form
    if kind == "quoted":
        return "Product"
    return _by_neighbours(name, text, mentions, person=person)


def label(kind: str, asked: Sequence[str]) -> str:
    """``kind`` as one of the types asked for; as it is where none were, and "" where none of them fits."""
    return _labels(tuple(asked)).get(kind, "") if asked and kind else kind


@cache
def _labels(asked: tuple[str, ...]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for kind, synonyms in _SYNONYMS.items():
        for name in asked:
            if name.casefold() in synonyms:
                labels.setdefault(kind, name)
    return labels


def _by_form(name: str) -> str:
    if name.isascii() or name[0] < "\u0530":
        head = _OF.split(name, maxsplit=1)[0] if " " in name else name
        words = head.lower().split()
        if not words:
            return ""
        if words[0] in ROLE_WORDS and len(words) > 1:
            return "Person"
        for known, kind in _LAST_WORDS:
            if words[-1].rstrip(".,") in known:
                return kind
        return ""
    ending, opening = _uncased()
    found = ending.search(name)
    if found is not None:
        return _kind_of_ending()[found.group()]
    found = opening.match(name)
    return _kind_of_opening()[found.group()] if found is not None else ""


def _by_neighbours(name: str, text: str, mentions: Sequence[Span], *, person: bool) -> str:
    for start, end in mentions[:3]:
        if _BORN.match(text, end):
            return "Person"
        before = _BEFORE.search(text, max(0, start - 16), start)
        word = before.group(1).lower() if before else ""
        if word in ROLE_WORDS:
            return "Person"
        if word in _PLACE_PREPOSITIONS:
            return "Location"
        if word == "by" and name.count(" ") in (1, 2):
            return "Person"
    return "Person" if person else ""


@cache
def _kind_of_ending() -> dict[str, str]:
    return {ending: kind for kind, endings in ENDINGS.items() for ending in endings.split()}


@cache
def _kind_of_opening() -> dict[str, str]:
    return {opening: kind for kind, openings in OPENINGS.items() for opening in openings.split()}


@cache
def _uncased() -> tuple[re.Pattern[str], re.Pattern[str]]:
    endings = "|".join(sorted(map(re.escape, _kind_of_ending()), key=lambda e: (-len(e), e)))
    openings = "|".join(sorted(map(re.escape, _kind_of_opening()), key=lambda o: (-len(o), o)))
    return re.compile(rf"(?<=.)(?:{endings})$"), re.compile(rf"(?:{openings})(?=.)")
