"""What a strategy is, and what it says of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kgrag.query.found import Found, Style
from kgrag.query.question import Question
from kgrag.records import HitKind

if TYPE_CHECKING:
    from kgrag.query.settings import SearchSettings


class Strategy(Protocol):
    """Looks for what answers a question. It holds no state of a question, so one object serves many at once."""

    async def find(self, question: Question) -> Found:
        """Rankings of ids, text units among them. Raises QueryError, StoreError, ModelError."""
        ...


@dataclass(frozen=True, kw_only=True)
class StrategySpec:
    """``artifacts`` are what the index must hold; ``methodology`` the profile they belong to, for messages.
    ``spare_first`` are the kinds that get what other kinds leave of the context budget.
    ``context`` are the kinds an answer is written from, in the order they are numbered;
    ``filters`` tells whether a metadata filter can be applied."""

    name: str
    summary: str
    methodology: str
    artifacts: frozenset[str]
    make: Callable[[SearchSettings], Strategy]
    aliases: tuple[str, ...] = ()
    style: Style = "concise"
    spare_first: tuple[HitKind, ...] = ("text_unit",)
    context: tuple[HitKind, ...] = ("point", "text_unit", "entity", "relationship", "report", "claim", "summary")
    filters: bool = True
