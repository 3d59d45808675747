"""What a character belongs to: the classes that text analysis and name keys share."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

DENSE = (
    r"\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
"""Han, Kana and Hangul, as the inside of a regular expression's class. The middle dot U+30FB separates and is not one."""

SPACELESS = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f"
"""Thai, Lao, Khmer and Myanmar: scripts that write no spaces between words."""

JOINERS = "\u200c\u200d\u00ad"
"""Invisible characters that stand inside words."""

_ARABIC = "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff"
_SCRIPTS = {
    "latin": "A-Za-z\u00aa\u00ba\u00c0-\u02af\u1e00-\u1eff",
    "cyrillic": "\u0400-\u052f\u1c80-\u1c8f",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "arabic": _ARABIC,
    "hebrew": "\u0590-\u05ff",
    "devanagari": "\u0900-\u097f",
    "armenian": "\u0530-\u058f",
    "tamil": "\u0b80-\u0bff",
    "dense": DENSE,
    "spaceless": SPACELESS,
}
_SCRIPT = re.compile("|".join(f"(?P<{name}>[{chars}])" for name, chars in _SCRIPTS.items()))

_LETTERS = {"ø": "o", "đ": "d", "ł": "l", "æ": "ae", "œ": "oe", "ı": "i", "þ": "th", "ð": "d", "ħ": "h", "ŧ": "t", "ß": "ss"}
_LATIN_MARKS = re.compile("(?<=[A-Za-z\u00c0-\u02af\u1e00-\u1eff])[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff]+")


def _latin_folds() -> dict[int, str]:
    folds = {ord(letter): plain for letter, plain in _LETTERS.items()}
    folds |= {ord(letter.upper()): plain.capitalize() for letter, plain in _LETTERS.items() if len(letter.upper()) == 1}
    folds[ord("ı")] = "i"
    folds[ord("I")] = "I"
    for code in (*range(0xC0, 0x250), *range(0x1E00, 0x1F00)):
        decomposed = unicodedata.normalize("NFD", chr(code))
        base = decomposed[0]
        if len(decomposed) > 1 and ("a" <= base.lower() <= "z" or ord(base) in folds):
            folds[code] = folds.get(ord(base), base)
    return folds


_LATIN_FOLDS = _latin_folds()


def fold_latin(text: str) -> str:
    """``text`` without the accents of Latin letters; marks of other scripts stay, as they are letters there."""
    if text.isascii():
        return text
    return _LATIN_MARKS.sub("", text.translate(_LATIN_FOLDS))


def script(text: str) -> str:
    """The script of the first letter that has a known one ("latin", "cyrillic", ..., "dense"), else ""."""
    found = _SCRIPT.search(text)
    return (found.lastgroup or "") if found else ""


def mark_class(codes: Iterable[int] = range(0x300, 0xD800)) -> str:
    """Combining marks among ``codes``, as the inside of a regular expression's class: ``\\w`` leaves them out,
    though vowel signs of Indic scripts and Thai are part of a word."""
    return "".join(chr(code) for code in codes if unicodedata.category(chr(code)) in ("Mn", "Mc", "Me"))
