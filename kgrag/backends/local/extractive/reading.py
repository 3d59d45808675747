"""What a text states, as far as sentences and names show it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kgrag.backends.local.extractive import lexicon
from kgrag.backends.local.extractive.names import Mention, mentions, title_name
from kgrag.ids import entity_key
from kgrag.records import ClaimStatement, EntityStatement, RelationshipStatement
from kgrag.tasks.extraction import ClaimsInput, Extraction, ExtractionInput
from kgrag.text import sentences

MOST_ENTITIES = 40
MOST_RELATIONSHIPS = 60
"""Per text unit, as LightRAG bounds its extraction records (40 entities of 100 records)."""
_LONGEST = 400
"""Characters of a sentence kept as a description."""
_BETWEEN = re.compile(r"[^\w\s'-]")
_DIGITS = re.compile(r"\d")


def read(input: ExtractionInput) -> Extraction:
    """Names as entities, and for each sentence the relationships of its first name, and of the document's title, to
    the others. A sentence says the same of a pair whichever way it is read, so the first named is the source."""
    text = input.text
    spans = sentences(text)
    found = mentions(text, input.title, spans)
    title = title_name(input.title) if input.title.strip() else ""
    entities: dict[str, EntityStatement] = {}
    if title:
        opening = _cut(text[spans[0][0] : spans[0][1]]) if spans else ""
        entities[entity_key(title)] = EntityStatement(name=title, type=kind_of(title), description=opening, confidence=9.0)
    relationships: dict[tuple[str, str], RelationshipStatement] = {}
    at = 0
    for start, end in spans:
        inside: list[Mention] = []
        while at < len(found) and found[at].start < end:
            if found[at].start >= start:
                inside.append(found[at])
            at += 1
        if inside:
            sentence = _cut(text[start:end])
            _add_entities(entities, inside, sentence)
            _add_relationships(relationships, text, inside, title, sentence)
    kept = list(entities.values())[:MOST_ENTITIES]
    names = {entity_key(entity.name) for entity in kept}
    pairs = [r for (source, target), r in relationships.items() if source in names and target in names]
    return Extraction(entities=kept, relationships=pairs[:MOST_RELATIONSHIPS])


def dated_claims(input: ClaimsInput) -> list[ClaimStatement]:
    """Sentences that date something about a listed entity."""
    listed = {entity_key(name): name for name in input.entities}
    spans = sentences(input.text)
    found = mentions(input.text, input.title, spans)
    claims = []
    for start, end in spans:
        inside = [m for m in found if start <= m.start < end]
        dates = [m.name for m in inside if m.kind == "date"]
        subjects = [listed[key] for m in inside if m.kind != "date" and (key := entity_key(m.name)) in listed]
        if dates and subjects:
            year = re.search(r"\d{4}", dates[0])
            date = year.group() if year else ""
            target = subjects[1] if len(subjects) > 1 else ""
            sentence = _cut(input.text[start:end])
            claims.append(
                ClaimStatement(
                    subject=subjects[0], object=target, type="dated statement", status="TRUE", description=sentence,
                    start_date=date, end_date=date, span=input.text[start:end],
                )
            )  # fmt: skip
    return claims


def kind_of(name: str) -> str:
    """What the words of a name tell of its kind: organization, place, event, person, date, or nothing."""
    parts = name.split()
    lower = [part.lower().strip(".,") for part in parts]
    if lower and _DIGITS.search(name) and all(_DIGITS.search(p) or p in _MONTHS for p in lower):
        return "date"
    for kind, told in _KINDS:
        if lower and (lower[-1] in told or (lower[0] in told and len(lower) > 1)):
            return kind
    if 2 <= len(parts) <= 4 and all(p[0].isupper() and not _DIGITS.search(p) for p in parts) and name.isascii():
        return "person"
    return ""


_KINDS = tuple((kind, frozenset(told)) for kind, told in lexicon.KINDS)
_MONTHS = frozenset(lexicon.MONTHS.lower().split("|"))


def _add_entities(entities: dict[str, EntityStatement], inside: Iterable[Mention], sentence: str) -> None:
    for mention in inside:
        key = entity_key(mention.name)
        if key not in entities:
            entities[key] = EntityStatement(
                name=mention.name,
                type=mention.kind or kind_of(mention.name),
                description=sentence,
                confidence=mention.confidence,
                span=mention.name,
            )


def _add_relationships(
    relationships: dict[tuple[str, str], RelationshipStatement], text: str, inside: list[Mention], title: str, sentence: str
) -> None:
    keys = [entity_key(mention.name) for mention in inside]
    title_key = entity_key(title) if title else ""
    for i in range(1, len(inside)):
        if keys[0] != keys[i]:
            near = i == 1
            kind = _link(text[inside[0].end : inside[i].start]) if near else ""
            _add(relationships, keys[0], keys[i], inside[0].name, inside[i].name, kind, sentence, 8.0 if near else 6.0)
    if title_key and title_key not in keys:
        for mention, key in zip(inside, keys, strict=True):
            _add(relationships, title_key, key, title, mention.name, "", sentence, 5.0)
    elif title_key and keys[0] != title_key:
        for mention, key in zip(inside, keys, strict=True):
            if key != title_key:
                _add(relationships, title_key, key, title, mention.name, "", sentence, 6.0)


def _add(
    relationships: dict[tuple[str, str], RelationshipStatement],
    source_key: str,
    target_key: str,
    source: str,
    target: str,
    kind: str,
    sentence: str,
    strength: float,
) -> None:
    if (source_key, target_key) not in relationships and (target_key, source_key) not in relationships:
        relationships[source_key, target_key] = RelationshipStatement(
            source=source, target=target, type=kind, description=sentence, strength=strength
        )


def _link(between: str) -> str:
    """The words between two neighbouring names, where they are few enough to name the relationship ("published by")."""
    words = _BETWEEN.sub(" ", between).split()
    return " ".join(words).lower() if 0 < len(words) <= 4 and not _BETWEEN.search(between) else ""


def _cut(sentence: str) -> str:
    return " ".join(sentence[:_LONGEST].split())
