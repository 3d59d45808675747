"""Questions: what they name, and the sentences that answer them best."""

from __future__ import annotations

import regex

from kgrag.backends.local.extractive.names import mentions
from kgrag.backends.local.extractive.salience import COMMON, Weights, split
from kgrag.ids import entity_key
from kgrag.tasks.answers import CANNOT_ANSWER, AnswerInput
from kgrag.tasks.query import KeyPoint, Keywords, MapInput
from kgrag.text import words

_LEAST_COVERAGE = 0.45
"""Share of the question's weight that the chosen sentences must hold between them; else there is no answer."""
_MOST_SENTENCES = {"concise": 3, "comprehensive": 8}
_HAS_DATE = regex.compile(r"\d{4}|\d+年|\d+년")
_HAS_NUMBER = regex.compile(r"\d")
_ASKS_WHEN = regex.compile(r"\b(?:when|what year|which year|wann|quand|cuándo)\b|何年|いつ|언제|什么时候|哪一年", regex.IGNORECASE)
_ASKS_NUMBER = regex.compile(
    r"\b(?:how (?:many|much|long|tall|old)|wie viele?|combien|cuántos?)\b|いくつ|何人|몇|多少|几", regex.IGNORECASE
)
_CANNOT = (
    (regex.compile(r"[\p{Hiragana}\p{Katakana}]"), "索引された文書からは答えられません。"),
    (regex.compile(r"\p{Hangul}"), "색인된 문서로는 답할 수 없습니다."),
    (regex.compile(r"\p{Han}"), "无法根据已索引的文档回答。"),
)


def asked_names(question: str) -> list[str]:
    """Names in a question, in its order; else its words that carry meaning."""
    found = {entity_key(m.name): m.name for m in mentions(question, "")}
    return list(found.values()) or _topic(question)


def question_keywords(question: str) -> Keywords:
    """Low level: the names. High level: what else the question is about."""
    low = asked_names(question)
    named = {word for name in low for word in words(name)}
    high = [word for word in _topic(question) if word not in named]
    return Keywords(low=low, high=[" ".join(high)] if high else list(low))


def _topic(question: str) -> list[str]:
    return [word for word in dict.fromkeys(words(question)) if word not in COMMON and len(word) > 1]


def best_sentences(input: AnswerInput) -> str:
    """The sentences that hold most of the question, best first, each cited by its item's number. Later ones must add
    terms of the question that are still missing, or come from the item that the first did not name."""
    numbers, lines = [], []
    for item in input.items:
        for sentence in split(item.text):
            numbers.append(item.number)
            lines.append((item.title, sentence))
    if not lines:
        return cannot(input.question)
    weights = Weights(input.question, [f"{title} {sentence}" for title, sentence in lines])
    order = {number: i for i, number in enumerate(dict.fromkeys(numbers))}
    scores = [
        weights.coverage(bag) + _fits(input.question, sentence) + 0.15 / (1 + order[number])
        for bag, (_, sentence), number in zip(weights.bags, lines, numbers, strict=True)
    ]
    chosen: list[int] = []
    covered: set[str] = set()
    for i in sorted(range(len(lines)), key=lambda i: (-scores[i], i)):
        new = (weights.bags[i] & weights.weight.keys()) - covered
        if len(chosen) < _MOST_SENTENCES[input.style] and (new or not chosen) and all(lines[i] != lines[j] for j in chosen):
            chosen.append(i)
            covered |= weights.bags[i]
    if weights.coverage(covered) < _LEAST_COVERAGE:
        return cannot(input.question)
    return " ".join(f"{lines[i][1]} [{numbers[i]}]" for i in chosen)


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
    """That there is no answer, in the question's script where that is known."""
    return next((text for script, text in _CANNOT if script.search(question)), CANNOT_ANSWER)


def _fits(question: str, sentence: str) -> float:
    """A little more for a sentence that holds what is asked for: a date, a number."""
    if _ASKS_WHEN.search(question):
        return 0.2 if _HAS_DATE.search(sentence) else 0.0
    if _ASKS_NUMBER.search(question):
        return 0.2 if _HAS_NUMBER.search(sentence) else 0.0
    return 0.0
