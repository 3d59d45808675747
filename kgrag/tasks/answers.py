"""Answering a question from a packed context."""

from __future__ import annotations

from typing import Literal

from kgrag.records import HitKind, Record


class ContextItem(Record, frozen=True, kw_only=True):
    """One numbered piece of context; an answer cites it as ``[number]``."""

    number: int
    kind: HitKind
    title: str = ""
    text: str


class AnswerInput(Record, frozen=True, kw_only=True):
    """``style`` is concise for most strategies, comprehensive for global. ``language`` empty: the question's own."""

    question: str
    items: list[ContextItem]
    style: Literal["concise", "comprehensive"] = "concise"
    language: str = ""


# output: str with [n] citations
