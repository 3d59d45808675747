"""What a strategy hands to the engine: rankings of ids, not bodies, so that only what is returned is ever read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from kgrag.query.fuse import Leg

Style = Literal["concise", "comprehensive"]


@dataclass(frozen=True, slots=True)
class Point:
    """A key point that a model read in reports (global search); ``reports`` are the ids it credits, ``text_unit_ids``
    the units those were written from."""

    text: str
    score: float
    reports: tuple[str, ...]
    text_unit_ids: tuple[str, ...] = ()


@dataclass(slots=True)
class Found:
    """``legs`` are fused per kind; ``points`` stand before everything else in the context.
    ``evidence_tokens`` caps the text of reports (None: the budget's share). ``notes`` say what was left out and why."""

    legs: list[Leg] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    evidence_tokens: int | None = None
    notes: list[str] = field(default_factory=list)
