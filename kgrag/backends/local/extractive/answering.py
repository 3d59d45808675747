"""Questions: what they name, and the sentences that answer them best."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from kgrag.backends.local.extractive.dates import date_pattern
from kgrag.backends.local.extractive.entities import read
from kgrag.backends.local.extractive.names import capitals
from kgrag.backends.local.extractive.salience import Weights, content_words, split
from kgrag.function_words import language_of
from kgrag.scripts import script
from kgrag.tasks.answers import CANNOT_ANSWER, AnswerInput
from kgrag.tasks.query import KeyPoint, Keywords, MapInput
from kgrag.text import words

_LEAST_COVERAGE = 0.4
"""Share of the question's weight that the chosen sentences must hold between them; else there is no answer."""
_LEAST_COVERAGE_DENSE = 0.35
"""The same for scripts without spaces, whose terms are pairs of letters and depend more on the wording."""
_MOST_SENTENCES = {"concise": 3, "comprehensive": 8}
_FITS = 0.2
"""What a sentence gains that holds the kind of thing asked for, on the scale of coverage."""
_BY_RANK = 0.15
"""What the first item's sentences gain, falling with the item's rank."""
_REPEATED = 0.5
"""Worth of terms that a chosen sentence holds already."""
_MOST_TOPICS = 8


@cache
def _asks() -> tuple[re.Pattern[str], ...]:
    return tuple(
        re.compile(pattern, re.IGNORECASE)
        for pattern in (
            r"\b(?:when|(?:what|which|in what|in which) (?:year|date|month|day|century)|wann|quand|cuándo|quando|wanneer|kiedy|когда|πότε)\b"
            r"|何年|いつ|언제|什么时候|什麼時候|何时|何時|哪一年|哪年|几年|متى|कब|เมื่อ",
            r"\b(?:how (?:many|much|long|tall|old|far|high|large)|wie viele?|combien|cuánt[oa]s?|quant[oaie]s?|hoeveel|сколько)\b"
            r"|いくつ|何人|몇|얼마|多少|几|كم|कितन|กี่",
            r"\b(?:who|whom|whose|where|wer|wem|wen|wo|woher|wohin|qui|où|quién|quiénes|dónde|quem|onde|chi|dove|wie|waar|kto|gdzie"
            r"|кто|где|куда|откуда|ποιος|πού)\b",
        )
    )


@cache
def _name_inside() -> re.Pattern[str]:
    """A capital after a small letter or comma: a name, where it is not the word the sentence begins with."""
    return re.compile(rf"(?<=[\w,;:)] )[{capitals()}]\w")


_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|hundred|thousand|million)\b|[一二三四五六七八九十百千万]"
)
_CANNOT_LATIN = {
    "de": "Das lässt sich aus den indexierten Dokumenten nicht beantworten.",
    "fr": "Les documents indexés ne permettent pas de répondre.",
    "es": "No puedo responder a partir de los documentos indexados.",
    "pt": "Não é possível responder a partir dos documentos indexados.",
    "it": "Non posso rispondere in base ai documenti indicizzati.",
    "nl": "Dat is uit de geïndexeerde documenten niet te beantwoorden.",
    "pl": "Nie można odpowiedzieć na podstawie zindeksowanych dokumentów.",
}
_CANNOT = {
    "cyrillic": "На основании проиндексированных документов ответить нельзя.",
    "greek": "Δεν μπορώ να απαντήσω από τα ευρετηριασμένα έγγραφα.",
    "arabic": "لا يمكن الإجابة استنادًا إلى المستندات المفهرسة.",
    "devanagari": "अनुक्रमित दस्तावेज़ों के आधार पर उत्तर नहीं दिया जा सकता।",
    "spaceless": "ไม่สามารถตอบได้จากเอกสารที่จัดทำดัชนีไว้",
}
_DENSE_CANNOT = (
    (re.compile(r"[\u3041-\u30ff]"), "索引された文書からは答えられません。"),
    (re.compile(r"[\uac00-\ud7a3]"), "색인된 문서로는 답할 수 없습니다."),
    (re.compile(r"[\u4e00-\u9fff]"), "无法根据已索引的文档回答。"),
)


def asked_names(question: str) -> list[str]:
    """Names in a question, in its order; else what of it carries meaning."""
    found = [f for f in read("", question).found.values() if f.kind != "date" and f.mentions]
    names = [f.name for f in sorted(found, key=lambda f: f.mentions[0])]
    return names or _topics(question)


def question_keywords(question: str) -> Keywords:
    """Low level: the names. High level: what else the question is about."""
    low = asked_names(question)
    named = {word for name in low for word in words(name)}
    high = [word for word in _topics(question) if word not in named]
    return Keywords(low=low, high=[" ".join(high)] if high else list(low))


def _topics(question: str) -> list[str]:
    return [word for word in dict.fromkeys(content_words(question)) if len(word) > 1][:_MOST_TOPICS]


@dataclass(slots=True)
class _Line:
    """A sentence of an item: the question's terms it holds, and what it gains by its kind and the item's rank."""

    number: int
    title: str
    text: str
    bag: set[str]
    gain: float = 0.0


def best_sentences(input: AnswerInput) -> str:
    """The sentences that hold most of the question, best first, each cited by its item's number. Each later one adds terms of
    the question that are still missing."""
    lines = [_Line(item.number, item.title, sentence, set()) for item in input.items for sentence in split(item.text)]
    weights = Weights(input.question, [f"{line.title} {line.text}" for line in lines])
    if not lines or not weights.total:
        return cannot(input.question)
    order = {number: i for i, number in enumerate(dict.fromkeys(line.number for line in lines))}
    fits = _fitting(input.question)
    for line, bag in zip(lines, weights.bags, strict=True):
        line.bag = bag
        line.gain = (_FITS if fits and fits.search(line.text) else 0.0) + _BY_RANK / (1 + order[line.number])
    chosen = _chosen(lines, weights, _MOST_SENTENCES[input.style])
    least = _LEAST_COVERAGE_DENSE if script(input.question) in ("dense", "spaceless") else _LEAST_COVERAGE
    if _support(lines, weights, _MOST_SENTENCES[input.style]) < least:
        return cannot(input.question)
    return " ".join(f"{line.text} [{line.number}]" for line in chosen)


def _support(lines: list[_Line], weights: Weights, most: int) -> float:
    """The share of the question's weight that the best ``most`` sentences hold together."""
    covered: set[str] = set()
    for line in sorted(lines, key=lambda line: -(weights.coverage(line.bag) + line.gain)):
        if most and not line.bag <= covered:
            covered |= line.bag
            most -= 1
    return weights.coverage(covered)


def _chosen(lines: list[_Line], weights: Weights, most: int) -> list[_Line]:
    """Greedily the best sentences; what a chosen one holds already counts for less."""
    chosen: list[_Line] = []
    said: set[str] = set()
    covered: set[str] = set()
    while len(chosen) < most:
        rest = [line for line in lines if line.text not in said and (not chosen or not line.bag <= covered)]
        if not rest:
            break
        best = max(
            rest,
            key=lambda line: weights.coverage(line.bag - covered) + _REPEATED * weights.coverage(line.bag & covered) + line.gain,
        )
        chosen.append(best)
        said.add(best.text)
        covered |= best.bag
    return chosen


def key_points(input: MapInput) -> list[KeyPoint]:
    """Per report its best sentence for the question, scored by the share of the question's weight it holds."""
    lines = [(report.number, sentence) for report in input.reports for sentence in split(report.content)]
    weights = Weights(input.question, [sentence for _, sentence in lines])
    best: dict[int, tuple[float, str]] = {}
    for (number, sentence), bag in zip(lines, weights.bags, strict=True):
        score = weights.coverage(bag)
        if score > best.get(number, (0.0, ""))[0]:
            best[number] = (score, sentence)
    return [KeyPoint(text=text, score=round(100 * score, 1), reports=[number]) for number, (score, text) in sorted(best.items())]


def cannot(question: str) -> str:
    """That there is no answer, in the question's language where that is known."""
    for letters, said in _DENSE_CANNOT:
        if letters.search(question):
            return said
    kind = script(question)
    if kind == "latin":
        return _CANNOT_LATIN.get(language_of(set(words(question))), CANNOT_ANSWER)
    return _CANNOT.get(kind, CANNOT_ANSWER)


def _fitting(question: str) -> re.Pattern[str] | None:
    """What a sentence has to hold to be of the kind asked for: a date, a number, a name."""
    when, how_many, who_or_where = _asks()
    if when.search(question):
        return date_pattern(small_months=True)
    if how_many.search(question):
        return _NUMBER
    if who_or_where.search(question):
        return _name_inside()
    return None
