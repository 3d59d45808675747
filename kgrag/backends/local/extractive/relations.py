"""Which of a unit's entities belong together, and how a sentence words it.

A text is about its topic: every sentence relates the names in it to the topic (named, meant by a pronoun, or only implied).
A sentence that does not name the topic has a subject of its own, its first name, related to the next few; and two names with
nothing but a short phrase between them ("in", "was founded by") are related by that phrase.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

from kgrag.backends.local.extractive.entities import Found, Reading
from kgrag.backends.local.extractive.names import Span
from kgrag.function_words import word_set

_TOPIC_NAMED, _TOPIC_MEANT, _TOPIC_IMPLIED, _SUBJECT, _PHRASE = 8.0, 7.0, 4.0, 5.0, 5.0
_STRONGEST = 10.0
_RELATED_TO_SUBJECT = 3
_MEANS_TOPIC = re.compile(
    r"(?:It|He|She|They|Its|His|Her|Their|The|This|These|Er|Sie|Es|Der|Die|Das|Il|Elle|El|Ella|Он|Она|Оно|Они)\b|[他她它其该該本此这這]|この|同|彼"
)
_PHRASE_BETWEEN = re.compile(r"[ ,(\"'”»]*((?:[^\W\d_]+[ -]){0,4}[^\W\d_]+) [\"“«(]?$")
_WEAK_WORDS = word_set(
    "the a an and or is was are were be been has had have also its his her their who which that then later first der die das ein eine und le"
    " la les un une et el los las y"
)
_CONNECTING = word_set(
    "in of by to at with from for on as near during under into onto through via against between after before within von in aus bei zu mit"
    " für auf an nach unter durch de du des dans à par pour avec sous sur en por con para del da do em no na com di dal nel per van te voor"
    " в на из от до для с по при под у born founded wrote directed died"
)
_ADJECTIVE = re.compile(r"\w+(?:ese|ish|ian|ean|can|ch|man)$")


@dataclass(slots=True)
class Related:
    """Two entities (keys) and the sentence that relates them; ``start`` and ``end`` span both names where the sentence has them."""

    source: str
    target: str
    type: str
    strength: float
    sentence: int
    start: int
    end: int


Place = tuple[int, int, str]


def relate(reading: Reading, limit: int) -> list[Related]:
    """At most ``limit`` related pairs, strongest first; one per pair, the strength raised by each further sentence."""
    pairs: dict[tuple[str, str], Related] = {}
    topic = reading.title or _most_mentioned(reading.found)
    for number, places in _by_sentence(reading):
        for related in _in_sentence(reading, topic, number, places):
            pair = (min(related.source, related.target), max(related.source, related.target))
            known = pairs.get(pair)
            if known is None:
                pairs[pair] = related
                continue
            known.strength = min(_STRONGEST, max(known.strength, related.strength) + 1)
            known.type = known.type or (related.type if related.source == known.source else "")
    return sorted(pairs.values(), key=lambda r: (-r.strength, r.sentence, r.source, r.target))[:limit]


def _most_mentioned(found: dict[str, Found]) -> str:
    """The entity a text without a telling title is about: the one mentioned most, at least twice."""
    names = [(len(f.mentions), -f.mentions[0][0], key) for key, f in found.items() if f.mentions and f.kind != "date"]
    count, _, key = max(names, default=(0, 0, ""))
    return key if count > 1 else ""


def _by_sentence(reading: Reading) -> list[tuple[int, list[Place]]]:
    starts = [start for start, _ in reading.sentences]
    sentences: dict[int, list[Place]] = {}
    for start, end, key in sorted((start, end, key) for key, f in reading.found.items() for start, end in f.mentions):
        number = bisect_right(starts, start) - 1
        places = sentences.setdefault(max(number, 0), [])
        if all(place[2] != key for place in places):
            places.append((start, end, key))
    return sorted(sentences.items())


def _in_sentence(reading: Reading, topic: str, number: int, places: list[Place]) -> list[Related]:
    out: list[Related] = []
    start, end = reading.sentences[number]
    named = next((place for place in places if place[2] == topic), None)
    if topic:
        means = _MEANS_TOPIC.match(reading.text, start) is not None
        strength = _TOPIC_NAMED if named else _TOPIC_MEANT if means else _TOPIC_IMPLIED
        for place in places:
            if place[2] == topic or _is_adjective(reading, place):
                continue
            span = (min(named[0], place[0]), max(named[1], place[1])) if named else (start, end)
            out.append(Related(topic, place[2], "", strength, number, *span))
    subject = next((place for place in places if reading.found[place[2]].kind not in ("date", "weak")), None)
    if named is None and subject is not None:
        after = [place for place in places if place[0] > subject[0] and not _is_adjective(reading, place)]
        for distance, place in enumerate(after[:_RELATED_TO_SUBJECT]):
            out.append(Related(subject[2], place[2], "", _SUBJECT - distance, number, subject[0], place[1]))
    for one, other in pairwise(places):
        linked = reading.found[one[2]].kind != "date" and not _is_adjective(reading, other)
        phrase = "" if not linked else _phrase(reading.text[one[1] : other[0]])
        if phrase:
            out.append(Related(one[2], other[2], phrase, _PHRASE, number, one[0], other[1]))
    return out


def _is_adjective(reading: Reading, place: Place) -> bool:
    """ "the American author" says that of the author, and is nothing that the topic is related to."""
    _, end, key = place
    name = reading.found[key].name
    return " " not in name and bool(_ADJECTIVE.match(name)) and reading.text[end : end + 2][1:].islower()


def _phrase(between: str) -> str:
    """The words between two names where they are few and connect them, without articles and auxiliaries; else ""."""
    if not between or len(between) > 48:
        return ""
    found = _PHRASE_BETWEEN.fullmatch(between)
    if found is None:
        return ""
    words = [word for word in found.group(1).split() if word not in _WEAK_WORDS]
    connects = any(word in _CONNECTING or word.endswith("ed") for word in words)
    return " ".join(words) if connects and all(word.islower() for word in words) else ""


def window(text: str, span: Span, inside: Span, longest: int) -> str:
    """``text[span]``, or where that is longer than ``longest`` characters, the part of it around ``inside``, cut at spaces."""
    start, end = span
    if end - start <= longest:
        return text[start:end]
    room = max(0, longest - (inside[1] - inside[0])) // 2
    low, high = max(start, inside[0] - room), min(end, inside[1] + room)
    high = min(high, low + longest)
    if low > start:
        space = text.find(" ", low, min(low + 20, inside[0]))
        low = space + 1 if space >= 0 else low
    if high < end:
        space = text.rfind(" ", max(high - 20, low), high)
        high = space if space > low else high
    return text[low:high]
