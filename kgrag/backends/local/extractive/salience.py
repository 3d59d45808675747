"""Which sentences say most: of a topic (nearest the centre of them all), or to a question (weighted overlap)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from math import log

from kgrag.backends.local.extractive.uncased_lexicon import (
    HAN_FUNCTION,
    HAN_QUESTIONS,
    KOREAN_PARTICLES,
    OTHER_STOP_WORDS,
    THAI_STOPS,
)
from kgrag.function_words import FUNCTION_WORDS, QUESTION_WORDS, language_of
from kgrag.scripts import DENSE, SPACELESS
from kgrag.text import Analyzer, count_tokens, sentences, words

_UNCASED = re.compile(f"[{DENSE}{SPACELESS}\u0590-\u0dff]")
_HIRAGANA = re.compile(r"[\u3041-\u309f]+")


@cache
def _analyzer() -> Analyzer:
    return Analyzer()


@cache
def _han_stops() -> re.Pattern[str]:
    return re.compile("|".join(sorted(HAN_QUESTIONS.split(), key=lambda w: -len(w))) + f"|[{HAN_FUNCTION}]|{_HIRAGANA.pattern}")


@cache
def _thai_stops() -> re.Pattern[str]:
    return re.compile("|".join(sorted(THAI_STOPS.split(), key=lambda w: -len(w))))


@cache
def _particle() -> re.Pattern[str]:
    return re.compile(rf"(?<=[\uac00-\ud7a3]{{2}})(?:{'|'.join(KOREAN_PARTICLES.split())})$")


@cache
def _common(language: str) -> frozenset[str]:
    return FUNCTION_WORDS[language] | QUESTION_WORDS.get(language, frozenset())


def content_words(text: str) -> list[str]:
    """The words that carry meaning, casefolded, in order; runs of unspaced scripts in pieces between function characters."""
    found = words(text)
    common = _common(language_of(set(found)))
    kept = [word for word in found if word not in common]
    if not _UNCASED.search(text):
        return kept
    out: list[str] = []
    for word in kept:
        if word in OTHER_STOP_WORDS:
            continue
        pieces = _thai_stops().split(_particle().sub("", word))
        out.extend(part for piece in pieces for part in _han_stops().split(piece) if part and part not in OTHER_STOP_WORDS)
    return out


def terms(text: str) -> list[str]:
    """Index terms of the words that carry meaning."""
    return _analyzer().tokens(" ".join(content_words(text)))


def all_terms(text: str) -> set[str]:
    """Every index term of a text; a superset of ``terms`` but for what the removal of function words brings together."""
    return set(_analyzer().tokens(text))


def split(text: str) -> list[str]:
    """Its sentences, each on one line."""
    return [" ".join(text[start:end].split()) for start, end in sentences(text)]


def central(lines: Sequence[str], max_tokens: int) -> list[str]:
    """The lines nearest the centre of them all, each adding something new, within ``max_tokens``, in their order.
    A line's score is the mean weight of its terms, a term's weight the share of lines that hold it (a centroid as in MEAD,
    Radev et al. 2004, with the novelty rule of SumBasic)."""
    bags = [set(terms(line)) for line in lines]
    spread = Counter(term for bag in bags for term in bag)
    scores = [sum(spread[t] for t in bag) / (len(bag) + _SHORT_LINE) for bag in bags]
    chosen: list[int] = []
    covered: set[str] = set()
    room = max_tokens
    least = _PERIPHERAL * max(scores, default=0.0)
    for i in sorted(range(len(lines)), key=lambda i: (-scores[i], lines[i])):
        if scores[i] < least:
            break
        cost = count_tokens(lines[i]) + 1
        if cost <= room and (bags[i] - covered or not chosen):
            chosen.append(i)
            covered |= bags[i]
            room -= cost
    return [lines[i] for i in sorted(chosen)]


_PERIPHERAL = 0.25
"""Share of the most central line's score below which a line is left out."""
_SHORT_LINE = 3.0
"""Terms added to a line's length, so that a line of one frequent word is not the most central."""


class Weights:
    """How much each term of a question weighs among some texts: rare terms more, absent ones most."""

    def __init__(self, question: str, texts: Sequence[str]) -> None:
        self.question = list(dict.fromkeys(terms(question)))
        wanted = set(self.question)
        self.bags = [all_terms(text) & wanted for text in texts]
        count = Counter(t for bag in self.bags for t in bag)
        self.weight = {t: log(1 + (len(texts) + 1) / (count[t] + 0.5)) for t in self.question}
        self.total = sum(self.weight.values())

    def coverage(self, bag: set[str]) -> float:
        """Share (0-1) of the question's weight that a bag of terms holds."""
        return sum(self.weight[t] for t in bag) / self.total if self.total else 0.0
