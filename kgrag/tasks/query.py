"""Reading a question, and mapping reports to key points (global search)."""

from __future__ import annotations

from kgrag.records import Record


class QuestionInput(Record, frozen=True, kw_only=True):
    question: str
    language: str = ""


class Keywords(Record, frozen=True, kw_only=True):
    """LightRAG's two levels: ``high`` are themes, ``low`` are entities and details."""

    high: list[str] = []
    low: list[str] = []


# entities of a question: list[str]


class MapReport(Record, frozen=True, kw_only=True):
    """``number`` is the report's ordinal in its batch."""

    number: int
    title: str
    content: str


class MapInput(Record, frozen=True, kw_only=True):
    question: str
    reports: list[MapReport]
    language: str = ""


class KeyPoint(Record, frozen=True, kw_only=True):
    """``score`` 0-100; ``reports`` are ordinals of the batch (empty: the whole batch)."""

    text: str
    score: float
    reports: list[int] = []
