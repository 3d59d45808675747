"""Tokens, words and sentences of every script.

Every store holds the tokens made here and only splits them at spaces, so a ranking does not depend on a server's analyzers.
"""

from __future__ import annotations

import operator
import re
import unicodedata
from functools import cache
from typing import Any

import Stemmer

from kgrag.function_words import FUNCTION_WORDS, QUESTION_WORDS, language_of
from kgrag.scripts import DENSE, JOINERS, SPACELESS, fold_latin, mark_class, script

_CHARS_PER_TOKEN = 4
_DENSE_RUN = re.compile(f"[{DENSE}]+")


def count_tokens(text: str) -> int:
    """Estimated model tokens: one per Han, Kana or Hangul character, one per four others (unified-kg-rag §7)."""
    if text.isascii():
        return -(-len(text) // _CHARS_PER_TOKEN)
    dense = len("".join(_DENSE_RUN.findall(text)))
    return dense - (-(len(text) - dense) // _CHARS_PER_TOKEN)


def truncate(text: str, max_tokens: int) -> str:
    """The longest start of ``text`` of at most ``max_tokens`` estimated tokens, cut before a word where one is near."""
    if max_tokens <= 0:
        return ""
    if len(text) <= max_tokens or count_tokens(text) <= max_tokens:
        return text
    low, high = 0, min(len(text), max_tokens * _CHARS_PER_TOKEN)
    while low < high:
        middle = (low + high + 1) // 2
        if count_tokens(text[:middle]) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    while 0 < low < len(text) and unicodedata.category(text[low])[0] == "M":  # never part a letter from its marks
        low -= 1
    inside_word = low < len(text) and text[low - 1 : low + 1].isalnum() and not _DENSE_RUN.match(text, low)
    if inside_word:
        space = max(text.rfind(" ", max(0, low - 40), low), text.rfind("\n", max(0, low - 40), low))
        low = space if space > 0 else low
    return text[:low].rstrip()


def is_dense(char: str) -> bool:
    """Whether a character is Han, Kana or Hangul, which count as a token each."""
    return _DENSE_RUN.match(char) is not None


_NAME_SEPARATORS = re.compile(r"[,，、،;；؛\n]")


def split_names(text: str) -> list[str]:
    """The names of a list as a person or model writes it, in any script's commas and semicolons."""
    return [name for part in _NAME_SEPARATORS.split(text) if (name := part.strip())]


# ---------------------------------------------------------------- words

_ASCII_WORD = re.compile(r"[a-z0-9]+(?:[.,'][a-z0-9]+|\+\+|#)*")


@cache
def _unicode_word() -> re.Pattern[str]:
    marks = mark_class() + JOINERS
    return re.compile(rf"[^\W_]+(?:(?:[.,'’]|[{marks}]+)[^\W_]+|\+\+|#)*[{marks}]*")


def _raw_words(text: str) -> list[str]:
    """Case- and width-folded words with the signs that may stand inside one (``u.s``, ``1,000``, ``c++``, ``alice's``)."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _unicode_word().findall(folded)


def words(text: str) -> list[str]:
    """Casefolded words, unstemmed. Scripts without spaces give one word per run of letters."""
    out: list[str] = []
    for raw in _raw_words(text):
        out.extend(_parts(raw, elision=False))
    return out


_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_DECIMAL = re.compile(r"\d+[.,]\d+")
_DOTTED = re.compile(r"[^\W\d_](?:\.[^\W\d_])+")
_DROPPED = str.maketrans("", "", JOINERS)


def _parts(raw: str, *, elision: bool) -> list[str]:
    """A raw word as plain ones. Numbers stay whole (1,000 is 1000; 3,14 is 3.14), "u.s" is "us", "alice's" is "alice"."""
    if raw.isalnum():
        return [raw]
    word = raw.translate(_DROPPED).replace("’", "'")
    if word.endswith(("+", "#")):
        bare = word.rstrip("+#")
        if len(bare) == 1:
            return [word]
        word = bare
    word = word.replace("++", "").replace("#", "")
    if word[0].isdecimal():
        if _THOUSANDS.fullmatch(word):
            return [word.replace(",", "")]
        if _DECIMAL.fullmatch(word):
            return [word.replace(",", ".")]
    if _DOTTED.fullmatch(word):
        return [word.replace(".", "")]
    word = word.removesuffix("'s")
    word = word.replace("'", " ") if elision else word.replace("'", "")
    return word.replace(".", " ").replace(",", " ").split()


# ---------------------------------------------------------------- analysis

_LATIN = {
    "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "en": "english", "eo": "esperanto", "es": "spanish",
    "et": "estonian", "eu": "basque", "fi": "finnish", "fr": "french", "ga": "irish", "hu": "hungarian", "id": "indonesian",
    "it": "italian", "lt": "lithuanian", "ms": "indonesian", "nb": "norwegian", "nl": "dutch", "nn": "norwegian",
    "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian", "st": "sesotho", "sv": "swedish", "tr": "turkish",
}  # fmt: skip
_LATIN_WITHOUT_STEMMER = {"af", "az", "br", "cy", "gl", "hr", "is", "la", "lv", "mt", "sk", "sl", "sq", "sw", "tl", "uz", "vi"}
_BY_SCRIPT = {
    "cyrillic": {"sr": "serbian", "uk": "", "be": "", "bg": "", "mk": "", "kk": "", "mn": "", "": "russian"},
    "arabic": {"fa": "persian", "ur": "", "ps": "", "ckb": "", "": "arabic"},
    "devanagari": {"ne": "nepali", "mr": "", "sa": "", "": "hindi"},
    "hebrew": {"yi": "yiddish", "": ""},
    "greek": {"": "greek"},
    "armenian": {"": "armenian"},
    "tamil": {"": "tamil"},
}
_ELISION = {"fr", "it", "ca", "ga", "eo"}
_KEEPS_ACCENTS = {"vi"}
_SEGMENT = re.compile(f"[{DENSE}]+|[{SPACELESS}]+|[^{DENSE}{SPACELESS}]+")
_MAX_CACHED_WORDS = 50_000
_MAX_CACHED_LENGTH = 32


def _stemmer_names(language: str) -> dict[str, str]:
    names = {name: by_language.get(language, by_language[""]) for name, by_language in _BY_SCRIPT.items()}
    names["latin"] = _LATIN.get(language, "" if language in _LATIN_WITHOUT_STEMMER else "english")
    return {name: algorithm for name, algorithm in names.items() if algorithm in _snowball()}


@cache
def _snowball() -> frozenset[str]:
    return frozenset(Stemmer.algorithms())


class _Stems(dict[str, str]):
    """Raw word to its tokens, joined by spaces; filled as words are met and emptied when it is full."""

    def __init__(self, language: str) -> None:
        super().__init__()
        self._stemmers = {name: Stemmer.Stemmer(algorithm).stemWord for name, algorithm in _stemmer_names(language).items()}
        self._elision = language in _ELISION
        self._fold = language not in _KEEPS_ACCENTS
        self._fold_first = self._fold and _stemmer_names(language).get("latin") in (None, "english")

    def __missing__(self, raw: str) -> str:
        if _DENSE_RUN.fullmatch(raw):
            return " ".join(map(operator.add, raw, raw[1:])) or raw
        tokens = " ".join(token for part in _parts(raw, elision=self._elision) for token in self._tokens(part))
        if len(raw) <= _MAX_CACHED_LENGTH:
            if len(self) >= _MAX_CACHED_WORDS:
                self.clear()
            self[raw] = tokens
        return tokens

    def _tokens(self, word: str) -> list[str]:
        if word.isascii():
            return [self._stem("latin", word)]
        out: list[str] = []
        for segment in _SEGMENT.findall(word):
            kind = script(segment)
            if kind in ("dense", "spaceless"):
                out.extend(_bigrams(segment))
            elif kind == "latin":
                plain = fold_latin(segment) if self._fold_first else segment
                stem = self._stem(kind, plain)
                out.append(fold_latin(stem) if self._fold else stem)
            else:
                out.append(self._stem(kind, segment))
        return out

    def _stem(self, kind: str, word: str) -> str:
        stem = self._stemmers.get(kind)
        return (stem(word) or word) if stem and not word[0].isdecimal() else word


@cache
def _cluster() -> re.Pattern[str]:
    return re.compile(f".[{mark_class()}]*", re.DOTALL)


def _bigrams(run: str) -> list[str]:
    """Pairs of neighbouring letters (each with its marks); a lone letter is a token itself."""
    letters = _cluster().findall(run)
    return list(map(operator.add, letters, letters[1:])) or letters


_ACRONYM = re.compile(r"\b(?:[A-Z]{2,}|(?:[A-Z]\.){2,})(?!\w)")


class Analyzer:
    """Text to search tokens: NFKC, casefold, Snowball stems by script (Latin letters by the index language), accents of
    Latin letters folded, bigrams in scripts without spaces, numbers whole. An index keeps function words; ``query_tokens`` leaves them out.

    ``language`` is a BCP 47 tag; only its first part counts, an unknown one stems Latin letters as English."""

    VERSION = 1

    def __init__(self, language: str = "en") -> None:
        self.language = language.lower().replace("_", "-").split("-")[0]
        self._stems = _Stems(self.language)
        self._stops: dict[str, frozenset[str]] = {}

    @property
    def identity(self) -> str:
        """What the tokens depend on besides the text: an index built under another identity has to be analysed anew."""
        return f"kgrag-text/{self.VERSION}/{self.language}/snowball-{Stemmer.version()}"

    def tokens(self, text: str) -> list[str]:
        """Tokens in reading order, without spaces in any of them."""
        return " ".join(map(self._stems.__getitem__, _raw_words(text))).split()

    def query_tokens(self, text: str) -> list[str]:
        """Tokens of a question without its function words, which only cost time and precision: on HotpotQA, 2WikiMultihopQA
        and MuSiQue samples recall@5 of BM25 rises by 0.01 to 0.03, and a tenth of the postings are read. All tokens where
        fewer than two would be left ("The Who")."""
        tokens = self.tokens(text)
        stops = self._stop_tokens(self.language) | self._stop_tokens(language_of(set(words(text))))
        if not text.isupper():  # "US" and "WHO" are no pronouns
            stops -= set(self.tokens(" ".join(_ACRONYM.findall(text))))
        kept = [token for token in tokens if token not in stops]
        return kept if len(kept) > 1 else tokens

    def _stop_tokens(self, language: str) -> frozenset[str]:
        found = self._stops.get(language)
        if found is None:
            listed = FUNCTION_WORDS.get(language, frozenset()) | QUESTION_WORDS.get(language, frozenset())
            found = self._stops[language] = frozenset(self.tokens(" ".join(sorted(listed))))
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return (Analyzer, (self.language,))


# ---------------------------------------------------------------- sentences

_BEFORE_NAME = frozenset(
    """mr mrs ms dr prof st rev gen col lt capt cmdr sgt gov sen rep hon pres vs cf eg ie viz ca approx eds mt ft
    bzw vgl ggf bspw hr fr evtl inkl zzgl hrsg mme mlle mgr sra srta dna ing avv geb gest d.h z.b u.a i.e e.g ph.d
    u.s u.k u.n г гг ул пр им руб см рис стр проф акад""".split()  # noqa: SIM905
)  # fmt: skip
_TITLES = frozenset(["mr", "mrs", "ms", "dr", "prof", "st", "rev", "gen", "col", "capt", "hon", "fr", "herr", "hr"])
_OPENER = re.compile(
    r"\s+[\"'“‘«(]*(?:The|It|He|She|They|His|Her|Its|Their|This|These|That|In|On|At|During|After|When|While|Although|However|But|As"
    r"|Der|Die|Das|Er|Sie|Es|Il|Elle|Le|La|Les|El|Он|Она|Они|В|На)\s"
)
"""A word that begins a sentence even behind an abbreviation ("World War I. During ...")."""
_BEFORE_NUMBER = frozenset(
    """no nos nr vol vols p pp ch sec art op fig figs jan feb mar apr jun jul aug sep sept oct nov dec abb bd est ca núm núms pag pág tel
    т тыс млн""".split()  # noqa: SIM905
)  # fmt: skip
_END = re.compile(
    r"(?P<wide>[。！？｡]+[。！？｡!?…」』”’）】》〉)\]\"']*)"
    r"|(?P<other>[؟۔।॥።፧។៕။༎༏᠃᠉‼⁇⁈⁉]+[»”’)\]\"']*)"
    r"|(?P<mark>[.!?…．]+[\"'”’»›)\]\u201c]*)"
    r"|(?P<blank>\n[ \t\r\f\v]*\n\s*)"
    r"|(?P<line>\n)"
)
_BEFORE_DOT = re.compile(r"[^\s(\[\"'“‘«]*\Z")
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*•·‣◦#>|]|\d{1,3}[.)、]|\(\d{1,3}\)|[a-zA-Z][.)])\s")
_WRAPPED_LINE = 40
_LONG = 200
_THAI_SPACE = re.compile(f"(?<=[{SPACELESS}]) +(?=[{SPACELESS}])")


def sentences(text: str) -> list[tuple[int, int]]:
    """Half-open spans of the sentences, in order, without the whitespace around them. Abbreviations, initials and
    decimals end none; a heading, a list item or a short line is one of its own. Linear in the text's length."""
    spans: list[tuple[int, int]] = []
    start = 0
    for found in _END.finditer(text):
        end = found.end()
        kind = found.lastgroup
        if kind == "mark" and not _ends_sentence(text, found.start(), end):
            continue
        if kind == "line" and _is_wrapped(text, start, found.start(), end):
            continue
        _add(spans, text, start, end)
        start = end
    _add(spans, text, start, len(text))
    return spans


def _ends_sentence(text: str, mark: int, end: int) -> bool:
    if end < len(text) and not text[end].isspace():
        return text[mark] in "!?…．" and _DENSE_RUN.match(text, end) is not None
    if text[mark] != "." or end - mark > 1:
        return not _next_letter(text, end).islower()
    follows = _next_letter(text, end)
    if follows.islower():
        return False
    before = _BEFORE_DOT.search(text, max(0, mark - 24), mark)
    word = before.group().lower() if before else ""
    is_initial = len(word) == 1 and word.isalpha()  # "J. Smith"; a one-letter last word is rarer
    if is_initial or word in _BEFORE_NAME:
        return not follows or (word not in _TITLES and _OPENER.match(text, end) is not None)
    if word in _BEFORE_NUMBER and follows.isdecimal():
        return False
    if word.isdigit() and len(word) <= 3 and "\n" in text[max(0, mark - len(word) - 1) : mark]:
        return False  # a numbered item
    return not (word.isdigit() and len(word) <= 2 and _is_ordinal(text, end))


def _is_ordinal(text: str, end: int) -> bool:
    """Such as "3. März", "14. Jahrhundert": a day or rank before its noun, as German and its neighbours write it."""
    return _ORDINAL_NOUN.match(text, end) is not None


_ORDINAL_NOUN = re.compile(
    r"\s+(?:jan|feb|mär|apr|mai|jun|jul|aug|sep|okt|nov|dez|jahrh|jh|kapitel|klasse|auflage|platz|led|bře|dub|kvě|čer|srp|zář|říj|lis|pro)",
    re.IGNORECASE,
)


def _next_letter(text: str, at: int) -> str:
    while at < len(text) and (text[at].isspace() or text[at] in "\"'“‘«(["):
        at += 1
    return text[at : at + 1]


def _is_wrapped(text: str, start: int, at: int, end: int) -> bool:
    """Whether a line break is only where a paragraph was wrapped."""
    line_start = max(start, text.rfind("\n", start, at) + 1)
    if at - line_start < _WRAPPED_LINE:
        return False
    return _LIST_ITEM.match(text, end) is None


def _add(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start == end:
        return
    if end - start > _LONG:
        for space in _THAI_SPACE.finditer(text, start, end):
            if space.start() - start >= _WRAPPED_LINE:
                spans.append((start, space.start()))
                start = space.end()
    spans.append((start, end))
