"""The answer model's context: a share of its tokens per kind of item, what one kind leaves goes to the others."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from pydantic import Field

from kgrag.records import Hit, HitKind, Section
from kgrag.section import Section as SettingsSection
from kgrag.text import count_tokens, truncate

_LINE_TOKENS = 4
"""What a number, its brackets and the line break of one item take."""


class BudgetSettings(SettingsSection):
    """How many tokens of context the answer model is given, and who gets them."""

    max_context_tokens: int = Field(default=30_000, ge=100)
    """Tokens of the whole prompt (LightRAG's total)."""
    prompt_tokens: int = Field(default=512, ge=0)
    """Tokens kept for the instructions around question and context (unified-kg-rag §7)."""
    shares: dict[HitKind, float] = {
        "text_unit": 0.50,
        "entity": 0.20,
        "relationship": 0.13,
        "report": 0.15,
        "claim": 0.02,
        "summary": 0.50,
    }
    """Relative share per kind, scaled over the kinds that are there: without reports and claims about
    0.60, 0.24 and 0.16, the reference's 18072, 7228 and 4698 tokens of 30,000."""


def pack(
    question: str, sections: Sequence[Section], settings: BudgetSettings, spare_first: Sequence[HitKind] = ("text_unit",)
) -> list[Section]:
    """The sections cut to the budget. Points (key points of reports) are seated first; of the rest, each kind may take its
    share, and what a kind leaves goes to the kinds that still want it, ``spare_first`` before the others. Within a kind,
    items keep their order and the first that overflows is truncated; an empty section is left out."""
    available = settings.max_context_tokens - settings.prompt_tokens - count_tokens(question)
    if sum(len(hit.title) + len(hit.text) + _LINE_TOKENS for s in sections for hit in s.hits) <= available:
        return [s for s in sections if s.hits]
    costs = {s.kind: [_tokens(hit) for hit in s.hits] for s in sections}
    wants = {kind: sum(each) for kind, each in costs.items()}
    seats = _seats(wants, available, settings.shares, spare_first)
    packed = (_fill(s, costs[s.kind], seats[s.kind]) for s in sections)
    return [s for s in packed if s.hits]


def _seats(
    wants: dict[HitKind, int], available: int, shares: dict[HitKind, float], spare_first: Sequence[HitKind]
) -> dict[HitKind, int]:
    points = min(wants.get("point", 0), available)
    rest = max(available - points, 0)
    others: list[HitKind] = [kind for kind in wants if kind != "point"]
    whole = sum(shares.get(kind, 0.0) for kind in others) or 1.0
    seats: dict[HitKind, int] = {"point": points}
    for kind in others:
        seats[kind] = min(wants[kind], int(rest * shares.get(kind, 0.0) / whole))
    spare = rest - sum(seats[kind] for kind in others)
    for kind in dict.fromkeys((*(k for k in spare_first if k in others), *others)):
        more = min(wants[kind] - seats[kind], spare)
        seats[kind] += more
        spare -= more
    return seats


def _fill(section: Section, costs: list[int], tokens: int) -> Section:
    kept: list[Hit] = []
    for hit, cost in zip(section.hits, costs, strict=True):
        if cost <= tokens:
            kept.append(hit)
            tokens -= cost
            continue
        room = tokens - _LINE_TOKENS - count_tokens(hit.title)
        text = truncate(hit.text, room) if room > 0 else ""
        if text:
            kept.append(msgspec.structs.replace(hit, text=text))
        break
    return Section(kind=section.kind, hits=kept)


def _tokens(hit: Hit) -> int:
    return _LINE_TOKENS + count_tokens(hit.title) + count_tokens(hit.text)
