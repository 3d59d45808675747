"""Summarising the description lines of one entity or relationship."""

from __future__ import annotations

from kgrag.records import Record


class DescriptionInput(Record, frozen=True, kw_only=True):
    """``name`` is the item ("A" or "A - B"); ``lines`` are what documents say of it."""

    name: str
    lines: list[str]
    language: str = ""


# output: str
