"""Dated sentences as claims about the entities they name."""

from __future__ import annotations

import re

from kgrag.backends.local.extractive.dates import dates
from kgrag.backends.local.extractive.entities import read
from kgrag.backends.local.extractive.lexicon import MONTH_NUMBERS
from kgrag.backends.local.extractive.salience import all_terms, terms
from kgrag.ids import entity_key
from kgrag.records import ClaimStatement
from kgrag.tasks.extraction import ClaimsInput

_RANGE = re.compile(r"(\d{4})\s?[–—-]{1,2}\s?(\d{4}|\d\d)")
_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_CJK = re.compile(r"(\d{4})\s?[年년](?:\s?(\d{1,2})\s?[月월])?(?:\s?(\d{1,2})\s?[日일])?")
_YEAR = re.compile(r"(?<!\d)\d{4}(?!\d)")
_DAY = re.compile(r"(?<!\d)\d{1,2}(?!\d)")
_DECADE = re.compile(r"(\d{3})0s")
_BETWEEN_WORDS = re.compile(r"[\s,.\d]+")


def dated_claims(input: ClaimsInput) -> list[ClaimStatement]:
    """One claim per sentence that names a listed entity and a date; ``about`` leaves only sentences that share a term with it."""
    listed = {entity_key(name): name for name in input.entities}
    reading = read(input.title, input.text)
    places = sorted((start, listed[key]) for key, f in reading.found.items() if key in listed for start, _ in f.mentions)
    wanted = set(terms(input.about))
    claims = []
    for start, end in reading.sentences:
        subjects = list(dict.fromkeys(name for at, name in places if start <= at < end))
        sentence = input.text[start:end]
        dated = dates(sentence, "", ()) if subjects else []
        subjects = [name for name in subjects if all(name != date.name for date in dated)]
        if not dated or not subjects or (wanted and wanted.isdisjoint(all_terms(sentence))):
            continue
        first, last = period(dated[0].name)
        claims.append(
            ClaimStatement(
                subject=subjects[0],
                object=subjects[1] if len(subjects) > 1 else "",
                type="dated statement",
                status="TRUE",
                description=" ".join(sentence.split()),
                start_date=first,
                end_date=last,
                span=sentence,
            )
        )
    return claims


def period(date: str) -> tuple[str, str]:
    """First and last day, month or year of a date expression in ISO 8601; empty where it names no year."""
    ranged = _RANGE.fullmatch(date)
    if ranged is not None:
        first, last = ranged.groups()
        return first, first[: 4 - len(last)] + last
    decade = _DECADE.fullmatch(date)
    if decade is not None:
        return f"{decade.group(1)}0", f"{decade.group(1)}9"
    for form in (_ISO, _CJK):
        found = form.match(date)
        if found is not None:
            iso = "-".join(part.zfill(2) for part in found.groups() if part)
            return iso, iso
    year = _YEAR.search(date)
    if year is None:
        return "", ""
    iso = year.group()
    month = next((n for word in _BETWEEN_WORDS.split(date) if (n := MONTH_NUMBERS.get(word.casefold()))), 0)
    if month:
        iso += f"-{month:02d}"
        day = _DAY.search(date)
        if day is not None and 1 <= int(day.group()) <= 31:
            iso += f"-{int(day.group()):02d}"
    return iso, iso
