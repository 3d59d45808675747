"""A pretended chat model: reads kgrag's own prompts and answers each in its form, from nothing but the prompt.

Deterministic, so two runs give the same graph. It knows capitals, years and shared words, no language; the numbers of
items it finds are like a real model's (about 10 entities and 20 relationships in 600 characters of an encyclopedia).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence

from kgrag.ports import Message
from kgrag.tasks.answers import ANSWER, CANNOT_ANSWER
from kgrag.tasks.descriptions import DESCRIBE
from kgrag.tasks.extraction import CLAIMS, EXTRACT, GLEAN
from kgrag.tasks.query import KEYWORDS, MAP_REPORTS, QUERY_ENTITIES
from kgrag.tasks.reports import REPORT

MOST_ENTITIES, MOST_RELATIONSHIPS, MOST_PAIRS = 40, 60, 10
"""Per unit, per unit, per sentence."""

_BLOCK = re.compile(r"<<<([^\n]+) ([0-9a-f]{8})\n(.*?)\n\1 \2>>>", re.DOTALL)
_CAPITALISED = r"[^\W\d_a-z][\w'’.-]*\w"
_NAME = re.compile(rf"{_CAPITALISED}(?:\s+(?:(?:of|the|de|von|van|la|and|for)\s+){{0,2}}{_CAPITALISED})+")
_YEAR = re.compile(r"\b(?:1[0-9]|20)[0-9]{2}\b")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_WORD = re.compile(r"\w+")
_LEADING = frozenset(
    {
        "The",
        "A",
        "An",
        "In",
        "On",
        "At",
        "He",
        "She",
        "It",
        "His",
        "Her",
        "And",
        "But",
        "For",
        "This",
        "That",
        "After",
        "When",
        "As",
    }
)


def read(messages: Sequence[Message]) -> str:
    """The reply to a prompt of one of ``kgrag.tasks``; to any other, its last message."""
    answer = _ANSWERS.get(messages[0].content)
    if answer is None:
        return messages[-1].content
    blocks = [(label, text) for label, _, text in _BLOCK.findall(messages[-1].content)]
    return answer(blocks)


Blocks = list[tuple[str, str]]


def _one(blocks: Blocks, label: str) -> str:
    return next((text for name, text in blocks if name == label), "")


def _names(text: str) -> list[str]:
    found: dict[str, None] = {}
    for match in _NAME.finditer(text):
        words = match.group().split()
        while words and words[0] in _LEADING:
            words.pop(0)
        if len(words) > 1:
            found[" ".join(words).strip(".,'’")] = None
    found.update((match.group(), None) for match in _YEAR.finditer(text))
    return list(found)


def _extract(blocks: Blocks) -> str:
    title, text = _one(blocks, "title").strip(), _one(blocks, "text")
    entities: dict[str, str] = {title: title} if title else {}
    pairs: list[tuple[str, str, str]] = []
    for sentence in filter(None, map(str.strip, _SENTENCE.split(text))):
        said = " ".join(sentence.split())[:400]
        names = [name for name in _names(sentence) if name != title]
        names = [title, *names] if title else names
        for name in names:
            if len(entities) < MOST_ENTITIES:
                entities.setdefault(name, said)
        known = [name for name in names if name in entities]
        combined = [(a, b, said) for i, a in enumerate(known) for b in known[i + 1 :]]
        pairs += combined[:MOST_PAIRS]
    return "\n".join(
        [
            "<entities>",
            *(_tagged("entity", name=n, type=_type(n), description=d, confidence="8", quote=n) for n, d in entities.items()),
            "</entities>\n<relationships>",
            *(
                _tagged("relationship", source=a, target=b, type="related", description=d, strength="5", quote=d)
                for a, b, d in pairs[:MOST_RELATIONSHIPS]
            ),
            "</relationships>",
        ]
    )


def _type(name: str) -> str:
    return "date" if name.isdigit() else "organization" if len(name.split()) > 3 else "person"


def _tagged(tag: str, **fields: str) -> str:
    return f"<{tag}>" + "".join(f"<{name}>{value}</{name}>" for name, value in fields.items()) + f"</{tag}>"


def _describe(blocks: Blocks) -> str:
    return " ".join(dict.fromkeys(_one(blocks, "lines").split("\n")))[:1000]


def _report(blocks: Blocks) -> str:
    lines = [line for label in ("entities", "relationships") for line in _one(blocks, label).split("\n") if line]
    names = [line.split(" (", 1)[0] for line in lines[:3]]
    findings = [{"summary": line.split(": ", 1)[0], "explanation": line.split(": ", 1)[-1]} for line in lines[:5]]
    report = {
        "title": ", ".join(names),
        "summary": " ".join(line.split(": ", 1)[-1] for line in lines[:5])[:800],
        "rating": 5.0,
        "rating_explanation": "Every community gets the middle of the scale.",
        "findings": findings,
    }
    return json.dumps(report, ensure_ascii=False)


def _keywords(blocks: Blocks) -> str:
    question = _one(blocks, "question")
    themes = [word for word in _WORD.findall(question.lower()) if len(word) > 4]
    return json.dumps({"high": themes[:5], "low": _names(question)}, ensure_ascii=False)


def _query_entities(blocks: Blocks) -> str:
    return json.dumps({"entities": _names(_one(blocks, "question"))}, ensure_ascii=False)


def _map(blocks: Blocks) -> str:
    words = set(_WORD.findall(_one(blocks, "question").lower()))
    points = []
    for label, text in blocks:
        shared = len(words & set(_WORD.findall(text.lower())))
        if label.startswith("report ") and shared:
            points.append({"description": text[:300], "score": min(20 * shared, 100), "reports": [int(label[7:])]})
    return json.dumps({"points": points}, ensure_ascii=False)


def _answer(blocks: Blocks) -> str:
    words = set(_WORD.findall(_one(blocks, "question").lower()))
    best = (0, "", "")
    for label, text in blocks:
        if not label.startswith("item ["):
            continue
        for sentence in _SENTENCE.split(text):
            shared = len(words & set(_WORD.findall(sentence.lower())))
            if shared > best[0]:
                best = (shared, sentence.strip(), label[5 : label.index("]") + 1])
    return f"{best[1]} {best[2]}" if best[0] else CANNOT_ANSWER


_ANSWERS: Mapping[str, Callable[[Blocks], str]] = {
    EXTRACT.instructions: _extract,
    GLEAN.instructions: lambda blocks: "<entities></entities>\n<relationships></relationships>",
    CLAIMS.instructions: lambda blocks: "<claims></claims>",
    DESCRIBE.instructions: _describe,
    REPORT.instructions: _report,
    KEYWORDS.instructions: _keywords,
    QUERY_ENTITIES.instructions: _query_entities,
    MAP_REPORTS.instructions: _map,
    ANSWER.instructions: _answer,
}
