"""global: one cut of the community hierarchy, mapped to key points (MS GraphRAG global search, unified-kg-rag §6.1.1).

Every report of the cut is put, in batches, to a model that reads scored key points out of it; the points, best first, and
the reports they cite are the context. There is no reduce call: the answer is written from the points themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
from pydantic import Field

from kgrag.engine import Outcome
from kgrag.errors import ItemError, ModelError, TransientModelError
from kgrag.ports import SearchStore
from kgrag.query.access import gather_or_cancel
from kgrag.query.found import Found, Point
from kgrag.query.fuse import Leg, by_place
from kgrag.query.question import Question
from kgrag.query.strategies.strategy import StrategySpec
from kgrag.records import decode
from kgrag.section import Section
from kgrag.tasks.query import MAP_REPORTS, KeyPoint, MapInput, MapReport
from kgrag.text import count_tokens

if TYPE_CHECKING:
    from kgrag.query.settings import SearchSettings

_PAGE = 1000
_TITLE_TOKENS = 8
"""What a report's ordinal and title line take in a batch."""


class GlobalSettings(Section):
    """Which reports are mapped, and what their points may take."""

    community_depth: int = Field(default=2, ge=0)
    """Depth of the cut, from the root (MS GraphRAG's ``community_level``)."""
    max_reports: int = Field(default=99, ge=1)
    """Most reports of a cut; a larger cut gives way to the deepest shallower one that fits (unified-kg-rag §6.1.1)."""
    map_context_tokens: int = Field(default=12_000, ge=100)
    """Tokens of reports in one map call (MS GraphRAG's ``data_max_tokens``)."""
    map_relevance_threshold: float = Field(default=0.0, ge=0, le=100)
    """Points that score no more than this (0-100) are dropped."""
    max_map_reduce_tokens: int = Field(default=8_000, ge=100)
    """Tokens of points in the context."""
    evidence_tokens: int | None = Field(default=4_000, ge=0)
    """Tokens of cited reports in the context; null: their share of the budget, 0: none."""


class Card(msgspec.Struct, frozen=True):
    """The part of a stored report that choosing a cut reads."""

    id: str
    depth: int = 0
    rank: int = 0
    child_ids: list[str] = []


class Body(msgspec.Struct, frozen=True):
    """The part of a stored report that mapping reads."""

    id: str
    title: str
    summary: str = ""
    full_content: str = ""
    text_unit_ids: list[str] = []

    @property
    def content(self) -> str:
        return self.full_content or self.summary


class Global:
    """``points`` and their reports; for a search, the text units the cited reports were written from, ranked."""

    def __init__(self, settings: GlobalSettings, candidates: int) -> None:
        self._settings = settings
        self._candidates = candidates

    async def find(self, question: Question) -> Found:
        reports = await self._reports(question)
        found = Found(evidence_tokens=self._settings.evidence_tokens)
        points = await self._points(question, reports, found)
        cited = list(dict.fromkeys(id for point in points for id in point.reports))
        found.points = points
        found.legs.append(Leg("cited_reports", "report", by_place(cited)))
        if "text_unit" in question.kinds:
            by_id = {report.id: report for report in reports}
            found.legs += await self._units(question, [by_id[id] for id in cited])
        return found

    # -- the cut

    async def _reports(self, question: Question) -> list[Body]:
        """The reports of the cut, by rank."""
        cards = await question.access.one(lambda: _cards(question.access.search))
        chosen = cut(cards, self._settings.community_depth, self._settings.max_reports)
        if chosen is None:
            question.notes.append(
                f"Even the root cut has more than {self._settings.max_reports} reports; the most similar were read."
            )
            ids = await self._similar(question)
        else:
            ids = [card.id for card in chosen]
        bodies = await question.access.one(lambda: question.access.search.get("reports", ids))
        return [decode(bodies[id], Body) for id in ids if id in bodies]

    async def _similar(self, question: Question) -> list[str]:
        await question.embed()
        legs = await question.access.together(*question.rankings("reports", self._settings.max_reports, name="reports"))
        return list(dict.fromkeys(item.id for leg in legs for item in leg.ranked))[: self._settings.max_reports]

    # -- the points

    async def _points(self, question: Question, reports: Sequence[Body], found: Found) -> list[Point]:
        groups = batches(reports, self._settings.map_context_tokens)
        answers = await gather_or_cancel(*(self._map(question, group) for group in groups))
        failed = [group for group, answer in zip(groups, answers, strict=True) if isinstance(answer, ModelError)]
        errors = [answer for answer in answers if isinstance(answer, ModelError)]
        if errors and len(errors) == len(groups):
            raise errors[0]
        points = [
            _point(point, group)
            for group, answer in zip(groups, answers, strict=True)
            if isinstance(answer, Outcome)
            for point in answer.value
            if point.score > self._settings.map_relevance_threshold
        ]
        question.usage = sum((a.usage for a in answers if isinstance(a, Outcome)), question.usage)
        if failed:
            found.notes.append(f"{len(failed)} of {len(groups)} batches of reports could not be read: {errors[0].message}")
        if not points and failed:
            unread = [report for group in failed for report in group]
            found.legs.append(Leg("unread_reports", "report", by_place([report.id for report in unread])))
        return kept_points(points, self._settings.max_map_reduce_tokens)

    async def _map(self, question: Question, group: Sequence[Body]) -> Outcome[list[KeyPoint]] | ModelError:
        reports = [MapReport(number=n, title=report.title, content=report.content) for n, report in enumerate(group, 1)]
        given = MapInput(question=question.text, reports=reports, language=question.language)
        try:
            return await question.engine.ask(MAP_REPORTS, given)
        except (ItemError, TransientModelError) as error:
            return error

    # -- text units of the evidence

    async def _units(self, question: Question, cited: Sequence[Body]) -> list[Leg]:
        lineage = sorted({unit for report in cited for unit in report.text_unit_ids})
        if not lineage:
            return []
        await question.embed()
        top_k = max(self._candidates, question.top_k)
        return list(await question.access.together(*question.rankings("text_units", top_k, name="cited_units", ids=lineage)))


def _cards(search: SearchStore) -> list[Card]:
    cards: list[Card] = []
    after = ""
    while page := search.scan("reports", after=after, limit=_PAGE):
        cards += [decode(body, Card) for _, body in page]
        after = page[-1][0]
    return cards


def cut(cards: Sequence[Card], depth: int, most: int) -> list[Card] | None:
    """The reports at ``depth`` and the leaves above it, highest rank first, ties by id; the deepest shallower cut where
    that has more than ``most``; None where even the roots are more. Every entity is covered once."""
    for level in range(depth, -1, -1):
        chosen = [card for card in cards if card.depth == level or (card.depth < level and not card.child_ids)]
        if len(chosen) <= most:
            return sorted(chosen, key=lambda card: (-card.rank, card.id))
    return None


def batches(reports: Sequence[Body], tokens: int) -> list[list[Body]]:
    """Reports in their order, as many to a batch as fit; one longer than a batch has one of its own."""
    groups: list[list[Body]] = []
    room = 0
    for report in reports:
        cost = count_tokens(report.title) + count_tokens(report.content) + _TITLE_TOKENS
        if not groups or cost > room:
            groups.append([])
            room = tokens
        groups[-1].append(report)
        room -= cost
    return groups


def kept_points(points: Sequence[Point], tokens: int) -> list[Point]:
    """The best points, in the order of their scores, up to the first that no longer fits (MS GraphRAG's packing)."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda point: -point.score):
        tokens -= count_tokens(point.text)
        if tokens < 0:
            break
        kept.append(point)
    return kept


def _point(point: KeyPoint, group: Sequence[Body]) -> Point:
    """With its batch ordinals as report ids; a point that cites none of its batch credits the whole batch."""
    cited = [group[n - 1] for n in point.reports if 1 <= n <= len(group)] or list(group)
    units = tuple(sorted({unit for report in cited for unit in report.text_unit_ids}))
    return Point(point.text, point.score, tuple(dict.fromkeys(report.id for report in cited)), units)


def _make(settings: SearchSettings) -> Global:
    return Global(settings.global_, settings.candidates)


SPEC = StrategySpec(
    name="global",
    summary="GraphRAG global: key points read out of every community report of one cut of the hierarchy.",
    methodology="graphrag",
    artifacts=frozenset({"text_units", "entities", "relationships", "graph", "communities", "reports"}),
    make=_make,
    style="comprehensive",
    spare_first=("report",),
    context=("point", "report"),
    filters=False,
)
