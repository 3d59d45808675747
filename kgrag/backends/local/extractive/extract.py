"""From a text unit to its entities and relationships."""

from __future__ import annotations

from bisect import bisect_right

from kgrag.backends.local.extractive.entities import Found, Reading, read
from kgrag.backends.local.extractive.kinds import entity_type, label
from kgrag.backends.local.extractive.names import Span
from kgrag.backends.local.extractive.relations import Related, relate, window
from kgrag.records import EntityStatement, RelationshipStatement
from kgrag.tasks.extraction import Extraction, ExtractionInput

_LEAST_ENTITIES = 10
_CHARS_PER_ENTITY = 40
_RELATIONSHIPS_PER_ENTITY = 2
_LONGEST_DESCRIPTION = 240
"""Characters of a description: a long sentence is cut to what stands around the names."""


def extract(input: ExtractionInput) -> Extraction:
    """Entities and relationships of a text unit. Their number is bounded by the text's length."""
    reading = read(input.title, input.text)
    if not reading.sentences:
        return Extraction()
    most = _LEAST_ENTITIES + len(input.text) // _CHARS_PER_ENTITY
    if len(reading.found) > most:
        reading.found = dict(sorted(reading.found.items(), key=lambda item: _weight(reading, item))[:most])
    related = relate(reading, _RELATIONSHIPS_PER_ENTITY * len(reading.found))
    starts = [start for start, _ in reading.sentences]
    entities = [_entity(reading, key, found, starts, input.entity_types) for key, found in reading.found.items()]
    return Extraction(entities=entities, relationships=[_relationship(reading, r) for r in related])


def _weight(reading: Reading, item: tuple[str, Found]) -> tuple[bool, int, int]:
    key, found = item
    return key != reading.title, -len(found.mentions), found.mentions[0][0] if found.mentions else 0


def _entity(reading: Reading, key: str, found: Found, starts: list[int], asked: list[str]) -> EntityStatement:
    text = reading.text
    kind = entity_type(found.name, found.kind, text, found.mentions, person=key in reading.persons)
    if not found.mentions:
        first = reading.sentences[0]
        quote = window(text, first, (first[0], first[0]), _LONGEST_DESCRIPTION)
        return EntityStatement(name=found.name, type=label(kind, asked), description=quote, confidence=4.0, span=quote)
    place = found.mentions[0]
    sentence = _sentence(reading.sentences, starts, place)
    return EntityStatement(
        name=found.name,
        type=label(kind, asked),
        description=_one_line(window(text, sentence, place, _LONGEST_DESCRIPTION)),
        confidence=_confidence(found, is_topic=key == reading.title),
        span=text[place[0] : place[1]],
    )


def _sentence(sentences: list[Span], starts: list[int], place: Span) -> Span:
    start, end = sentences[max(bisect_right(starts, place[0]) - 1, 0)]
    return min(start, place[0]), max(end, place[1])


def _confidence(found: Found, *, is_topic: bool) -> float:
    """On the scale of 1 to 10: how sure the form of the name and its repetition make it."""
    score = {"weak": 3.0, "term": 4.0, "date": 7.0, "quoted": 6.0, "topic": 6.0}.get(found.kind, 5.0)
    if " " in found.name and found.kind == "name":
        score += 1.0
    return min(10.0, score + min(2, len(found.mentions) - 1) + 2 * is_topic)


def _relationship(reading: Reading, related: Related) -> RelationshipStatement:
    quote = window(reading.text, reading.sentences[related.sentence], (related.start, related.end), _LONGEST_DESCRIPTION)
    return RelationshipStatement(
        source=reading.found[related.source].name,
        target=reading.found[related.target].name,
        type=related.type,
        description=_one_line(quote),
        strength=related.strength,
        span=quote,
    )


def _one_line(text: str) -> str:
    return " ".join(text.split()) if "\n" in text else text
