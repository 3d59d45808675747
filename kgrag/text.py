"""Text as kgrag sees it: token estimates, sentences, words, and the one analysis every index and query shares.

Analysis happens here and nowhere else: stores are given tokens joined by spaces (``SearchStore``), so an embedded and a
server store rank alike in every language.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import regex
import Stemmer

_DENSE = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\u3005\u3007\u30fc"
_UNSPACED = _DENSE + r"\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_dense = regex.compile(rf"[{_DENSE}]")
_word = regex.compile(r"\d+(?:[.,]\d+)+|[\p{L}\p{M}\p{N}]+")
_ascii_word = re.compile(r"\d+(?:[.,]\d+)+|[a-z0-9]+")
_run = regex.compile(rf"[{_UNSPACED}\p{{M}}]+|[^{_UNSPACED}]+")
_starts_unspaced = regex.compile(rf"[{_UNSPACED}]")
_latin_accents = regex.compile(r"(?<=\p{Latin}\p{M}*)\p{Mn}")

_SCRIPT_LANGUAGES = (
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u052f", "russian"),
    ("\u0530", "\u058f", "armenian"),
    ("\u0590", "\u05ff", ""),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
    ("\u0b80", "\u0bff", "tamil"),
)
_LANGUAGES = {
    "ar": "arabic", "hy": "armenian", "eu": "basque", "ca": "catalan", "da": "danish", "nl": "dutch", "en": "english",
    "fi": "finnish", "fr": "french", "de": "german", "el": "greek", "hi": "hindi", "hu": "hungarian", "id": "indonesian",
    "ga": "irish", "it": "italian", "lt": "lithuanian", "ne": "nepali", "no": "norwegian", "pt": "portuguese",
    "ro": "romanian", "ru": "russian", "sr": "serbian", "es": "spanish", "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip
_CACHE_WORDS = 100_000


def count_tokens(text: str) -> int:
    """An estimate: one token per Han, Hangul or Kana character, else one per four characters (unified-kg-rag §7)."""
    if text.isascii():
        return (len(text) + 3) // 4
    dense = len(_dense.findall(text))
    return dense + (len(text) - dense + 3) // 4


def truncate(text: str, max_tokens: int) -> str:
    """The longest start of ``text`` within ``max_tokens``, cut at a space where one is near."""
    if max_tokens <= 0:
        return ""
    if count_tokens(text) <= max_tokens:
        return text
    low, high = 0, min(len(text), max_tokens * 4)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count_tokens(text[:middle]) <= max_tokens else (low, middle - 1)
    space = text.rfind(" ", max(0, low - 40), low)
    return text[: space if space > 0 else low].rstrip()


def words(text: str) -> list[str]:
    """Casefolded words in order, unstemmed; a run of an unspaced script is one word."""
    found: list[str] = _word.findall(unicodedata.normalize("NFKC", text).casefold())
    return found


def is_dense(char: str) -> bool:
    """Whether a character is Han, Hangul or Kana, which count as a token each."""
    return _dense.match(char) is not None


_NAME_SEPARATORS = re.compile(r"[,，、;；\n]+")


def split_names(text: str) -> list[str]:
    """Names listed in a line of any script."""
    return [name for part in _NAME_SEPARATORS.split(text) if (name := part.strip())]


# ---------------------------------------------------------------- sentences

_CLOSERS = r"[\"'”’»」』）)\]】》〉]*"
_END = re.compile(rf"[。！？｡!?…؟۔।॥။።]+{_CLOSERS}|\.+{_CLOSERS}(?=\s|$)|[\r\n\u2028\u2029]+")
_WIDE = frozenset("。！？｡؟۔।॥။።")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[\"'“‘])(?:\w|[A-Za-z]\.[A-Za-z]|mr|mrs|ms|dr|prof|st|jr|sr|vs|etc|e\.g|i\.e|no|vol|fig|inc|ltd|corp|co|approx|gen|col|capt|"
    r"lt|sgt|rev|hon|gov|sen|rep|mt|ft|bzw|z\.b|d\.h|u\.a|ca|nr|bd|usw|jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|nov|dec)$",
    re.IGNORECASE,
)


def sentences(text: str) -> list[tuple[int, int]]:
    """Half-open spans of the sentences of a text in any script, without surrounding white space.

    A full stop ends none after an initial or a common abbreviation, before a lower-case letter, or inside a number."""
    spans: list[tuple[int, int]] = []
    start = 0
    for match in _END.finditer(text):
        mark = text[match.start()]
        if mark == "." and not _full_stop(text, start, match):
            continue
        if mark in "!?…" and match.end() < len(text) and not text[match.end()].isspace() and not is_dense(text[match.end()]):
            continue
        end = match.start() if mark in "\r\n\u2028\u2029" else match.end()
        _append(spans, text, start, end)
        start = match.end()
    _append(spans, text, start, len(text))
    return spans


def _full_stop(text: str, start: int, match: re.Match[str]) -> bool:
    end = match.end()
    while end < len(text) and text[end] in " \t":
        end += 1
    if end < len(text) and text[end].islower():
        return False
    if match.end() - match.start() > 1 or end >= len(text) or text[end] in "\r\n":
        return True
    return _ABBREVIATION.search(text, max(start, match.start() - 12), match.start()) is None


def _append(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        spans.append((start, end))


# ---------------------------------------------------------------- analysis


class Analyzer:
    """Text to index terms: NFKC, casefold, Latin accents folded, words stemmed by script, and bigrams for scripts
    written without spaces (Han, Kana, Hangul, Thai, Lao, Khmer, Myanmar).

    Latin words are stemmed for ``language`` (ISO 639-1; Snowball by way of PyStemmer; a language without a stemmer keeps
    its words whole). No stop words are removed: BM25 gives them next to nothing."""

    def __init__(self, language: str = "en") -> None:
        self.language = language
        self._latin = _LANGUAGES.get(language.lower().split("-")[0], "")
        self._stems: dict[str, str] = {}

    @property
    def identity(self) -> str:
        """What decides the tokens: an index built with another identity must be built again."""
        return f"kgrag-1/{self._latin or 'none'}"

    def tokens(self, text: str) -> list[str]:
        """Index terms in the order of the text, repeats included."""
        stems = self._stems
        if text.isascii():
            found = _ascii_word.findall(text.lower())
        else:
            folded = unicodedata.normalize("NFKC", text).casefold()
            folded = unicodedata.normalize("NFC", _latin_accents.sub("", unicodedata.normalize("NFD", folded)))
            found = _word.findall(folded)
        out: list[str] = []
        for word in found:
            stem = stems.get(word)
            if stem is None:
                if not word.isascii() and regex.search(_starts_unspaced, word):
                    out += _unspaced(word, self)
                    continue
                stem = self._stem(word)
            out.append(stem)
        return out

    def _stem(self, word: str) -> str:
        if len(self._stems) >= _CACHE_WORDS:
            self._stems.clear()
        if word[0].isdigit():
            stem = word.replace(",", "")
        else:
            stemmer = _stemmer(self._language_of(word))
            stem = stemmer.stemWord(word) if stemmer else word
        self._stems[word] = stem
        return stem

    def _language_of(self, word: str) -> str:
        first = word[0]
        if first < "\u0370":
            return self._latin
        for low, high, language in _SCRIPT_LANGUAGES:
            if low <= first <= high:
                return language
        return self._latin if "LATIN" in unicodedata.name(first, "") else ""


def _unspaced(word: str, analyzer: Analyzer) -> list[str]:
    """Bigrams of the runs of unspaced scripts in a word, and the terms of what stands between them."""
    out: list[str] = []
    for run in _run.findall(word):
        if not _starts_unspaced.match(run):
            out += [analyzer._stems.get(run) or analyzer._stem(run)]
        elif len(run) < 2:
            out.append(run)
        else:
            out += [run[i : i + 2] for i in range(len(run) - 1)]
    return out


@lru_cache(maxsize=64)
def _stemmer(language: str) -> Stemmer.Stemmer | None:
    return Stemmer.Stemmer(language) if language in Stemmer.algorithms() else None
