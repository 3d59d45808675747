"""Which sentences say most: of a topic (centroid) or to a question (weighted overlap)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log

from kgrag.text import Analyzer, count_tokens, sentences, words

_analyzer = Analyzer()

COMMON = frozenset(
    """a an the is are was were be been do does did has have had will would can could should may might must of in on at by for to
    from with about as into than then that this these those it its he she his her they them their we our you your i and or but not
    no so if when where who whom whose which what why how many much name named called there
    der die das den dem des ein eine einer eines und oder ist sind war waren wer wie was wo wann warum viele hat haben zu im in am von mit
    le la les un une des du de et est sont qui que quoi où quand comment el los las una y es son quién qué dónde cuándo cómo""".split()  # noqa: SIM905
)
"""Words of a question that no passage needs to hold."""


def terms(text: str) -> list[str]:
    """Index terms of the words that carry meaning."""
    return _analyzer.tokens(" ".join(word for word in words(text) if word not in COMMON))


def split(text: str) -> list[str]:
    """Its sentences."""
    return [" ".join(text[start:end].split()) for start, end in sentences(text)]


def central(lines: Sequence[str], max_tokens: int) -> list[str]:
    """The lines nearest the centre of them all, each adding something new, within ``max_tokens``, in their order.
    A line's score is the mean weight of its terms, a term's weight the share of lines that hold it."""
    bags = [set(terms(line)) for line in lines]
    spread = Counter(term for bag in bags for term in bag)
    scores = [sum(spread[t] for t in bag) / (len(bag) + 3.0) for bag in bags]
    chosen: list[int] = []
    covered: set[str] = set()
    room = max_tokens
    for i in sorted(range(len(lines)), key=lambda i: (-scores[i], lines[i])):
        cost = count_tokens(lines[i]) + 1
        if cost <= room and bags[i] - covered:
            chosen.append(i)
            covered |= bags[i]
            room -= cost
    return [lines[i] for i in sorted(chosen)]


class Weights:
    """How much each term of a question weighs among some texts: rare terms more, absent ones most."""

    def __init__(self, question: str, texts: Sequence[str]) -> None:
        self.question = list(dict.fromkeys(terms(question)))
        self.bags = [set(terms(text)) for text in texts]
        count = Counter(t for bag in self.bags for t in bag)
        self.weight = {t: log(1 + (len(texts) + 1) / (count[t] + 0.5)) for t in self.question}
        self.total = sum(self.weight.values())

    def coverage(self, bag: set[str]) -> float:
        """Share (0-1) of the question's weight that a bag of terms holds."""
        return sum(w for t, w in self.weight.items() if t in bag) / self.total if self.total else 0.0
