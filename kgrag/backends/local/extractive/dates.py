"""Dates as documents write them: days, months, years, decades and centuries in the scripts and languages of the lexicon."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache

from kgrag.backends.local.extractive.lexicon import SMALL_MONTHS, months
from kgrag.backends.local.extractive.names import Mention

_YEAR = r"(?:1\d{3}|20\d\d)"
_ERA = r"(?:BCE|BC|CE|AD|v\. ?Chr\.|n\. ?Chr\.|до н\. ?э\.|н\. ?э\.|av\. J\.-C\.|a\. ?C\.|d\. ?C\.)"
_DAY = r"\d{1,2}(?:st|nd|rd|th|\.|er|º)?"


@cache
def date_pattern(*, small_months: bool) -> re.Pattern[str]:
    """Matches one whole date expression; a bare range of years is matched as group ``range`` and names no date of its own.
    ``small_months`` also looks for dates that begin with a month's name without a capital, which takes longer."""
    month = rf"(?:{'|'.join(months())})"
    first = month if small_months else rf"(?:{'|'.join(m for m in months() if m[0].isupper())})"
    start = r"(?<![\w.,$£€¥%–—/-])" + ("" if small_months else r"(?=[\dA-ZА-ЯΑ-Ω])")
    of = r"\s(?:of\s|de\s|di\s|del\s)?"
    year = rf"(?:,?\s(?:de\s|del\s|of\s)?{_YEAR}(?:\sг(?:\.|ода))?)"
    return re.compile(
        rf"{start}(?:"
        rf"(?:{_DAY}\s(?:and|to|und|bis|et|y|e|и|–|-)\s)?{_DAY}{of}{month}(?![^\W\d_]){year}?"
        rf"|{first}\.?\s\d{{1,2}}(?:st|nd|rd|th)?(?!\d){year}?"
        rf"|{first}\.?(?:,?\s|\sde\s|\sdel\s){_YEAR}"
        rf"|(?P<range>{_YEAR}\s?[–—-]{{1,2}}\s?(?:{_YEAR}|\d\d))"
        rf"|{_YEAR}-\d\d-\d\d"
        rf"|\d{{1,2}}[./]\d{{1,2}}[./]{_YEAR}"
        rf"|{_YEAR}s"
        rf"|\d{{1,2}}(?:st|nd|rd|th)[\s-](?:century|millennium)(?:\s{_ERA})?"
        rf"|\d{{1,2}}\. Jahrhundert(?:\s{_ERA})?"
        rf"|[XVI]+e? (?:siècle|век[ае]?|secolo)"
        rf"|\d{{1,4}}\s{_ERA}"
        rf"|{_YEAR}(?:\sг(?:\.|оду?|ода))?"
        rf")(?![\w%])(?![,.]\d)"
        rf"|(?<!\d)\d{{2,4}}年(?:\d{{1,2}}月)?(?:\d{{1,2}}日)?|(?<!\d)\d{{3,4}}\s?년(?:\s?\d{{1,2}}\s?월)?(?:\s?\d{{1,2}}\s?일)?"
    )


def dates(text: str, language: str, lower: Collection[str]) -> list[Mention]:
    """Dates in order; ranges of years have the kind ``range``. ``lower`` are the text's words without capitals."""
    small = not _LATIN_ONLY.fullmatch(text) or (language != "en" and not SMALL_MONTHS.isdisjoint(lower))
    return [Mention(m.group(), m.start(), m.end(), m.lastgroup or "date") for m in date_pattern(small_months=small).finditer(text)]


_LATIN_ONLY = re.compile(r"[\u0000-\u058f\u1e00-\u2fff]*")
