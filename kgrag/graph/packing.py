"""What a community's report is written from.

Edge by edge, as MS GraphRAG's ``sort_context``: the best connected first, each with its ends and the claims about them, until
the budget is full. Three deviations from it: an edge that does not fit is left out and the next one tried, every edge
among the chosen members is offered, and members without an edge among them come last (unified-kg-rag §4.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from pydantic import Field

from kgrag.records import Claim, Entity, Relationship, Report
from kgrag.section import Section
from kgrag.tasks.reports import ReportEntity, ReportInput, ReportRelationship, SubReport
from kgrag.text import count_tokens, truncate

_MARKUP_TOKENS = 8
"""What a line costs besides its words, in the form prompts give it."""


class ReportSettings(Section):
    """What community reports are written from."""

    max_entities_per_report: int = Field(default=50, ge=1)
    """Members of a community that its report may name, those of highest degree. From the reference."""
    max_report_context_tokens: int = Field(default=4000, ge=100)
    """Tokens of entities, relationships and claims a report is written from; as many again of its sub-communities'
    reports where they did not all fit. From the reference."""
    enable_sub_community_rollup: bool = True
    """Whether a report that could not take in all its community adds its sub-communities' summaries. From the reference."""
    max_lineage_text_units: int = Field(default=10_000, ge=1)
    """Text units and documents a report lists as its lineage. From the summary tree of the reference."""


class Costs:
    """Tokens of rendered items by id, counted once although an item stands in the reports of every level above it."""

    def __init__(self) -> None:
        self._tokens: dict[str, int] = {}

    def of(self, id: str, *parts: str) -> int:
        cost = self._tokens.get(id)
        if cost is None:
            cost = self._tokens[id] = count_tokens(" ".join(parts)) + _MARKUP_TOKENS
        return cost


def pack(
    name: str,
    entities: Sequence[Entity],
    relationships: Iterable[Relationship],
    claims: Mapping[str, Sequence[Claim]],
    settings: ReportSettings,
    costs: Costs,
    language: str = "",
) -> tuple[ReportInput, bool]:
    """The packed input and whether something was left out for lack of room.

    ``entities`` are the chosen members, best first, ``relationships`` those among them, by combined degree of their
    ends, then weight, then id; ``claims`` the claims by subject id."""
    packing = _Packing(entities, claims, settings.max_report_context_tokens, costs)
    for edge in relationships:
        packing.edge(edge)
    for entity in entities:
        packing.isolated(entity)
    told = [packing.entities[e.id] for e in entities if e.id in packing.claims]
    input = ReportInput(
        name=name,
        entities=[ReportEntity(name=e.name, type=e.type, description=e.description, rank=e.rank) for e in told],
        relationships=[
            ReportRelationship(
                source=packing.entities[r.source_id].name,
                target=packing.entities[r.target_id].name,
                description=r.description or r.type,
                weight=r.weight,
            )
            for r in packing.edges
        ],
        claims=[line for entity in told for line in packing.claims[entity.id]],
        language=language,
    )
    return input, packing.cut


def roll_up(children: Iterable[tuple[int, Report]], budget: int) -> list[SubReport]:
    """Summaries of sub-communities with their rating, those of most members first, each that still fits.
    ``children`` are (number of members, report)."""
    kept = []
    for _, report in sorted(children, key=lambda child: (-child[0], child[1].id)):
        cost = count_tokens(f"{report.title} {report.summary}") + _MARKUP_TOKENS
        if cost <= budget:
            budget -= cost
            kept.append(SubReport(name=report.title, rating=report.rating, summary=report.summary))
    return kept


def claim_line(claim: Claim, entities: Mapping[str, Entity]) -> str:
    """A claim as one line: subject, type, object, status, dates, description; what it does not say is left out."""
    subject = entities[claim.subject_id].name if claim.subject_id in entities else ""
    target = entities[claim.object_id].name if claim.object_id in entities else claim.object
    dates = " to ".join(dict.fromkeys(date for date in (claim.start_date, claim.end_date) if date))
    return ", ".join(part for part in (subject, claim.type, target, claim.status, dates, claim.description) if part)


class _Packing:
    def __init__(self, entities: Sequence[Entity], claims: Mapping[str, Sequence[Claim]], budget: int, costs: Costs) -> None:
        self.entities = {e.id: e for e in entities}
        self.claims: dict[str, list[str]] = {}
        self.edges: list[Relationship] = []
        self.cut = False
        self._stated = claims
        self._costs = costs
        self._left = budget
        if entities:
            self._take_top(entities[0])

    def edge(self, edge: Relationship) -> None:
        ends = self.entities[edge.source_id], self.entities[edge.target_id]
        new = [e for e in ends if e.id not in self.claims]
        cost = self._costs.of(edge.id, ends[0].name, ends[1].name, edge.description or edge.type) + self._cost(new)
        if cost > self._left:
            self.cut = True
            return
        self._take(new, cost)
        self.edges.append(edge)

    def isolated(self, entity: Entity) -> None:
        if entity.id in self.claims:
            return
        cost = self._cost([entity])
        if cost > self._left:
            self.cut = True
            return
        self._take([entity], cost)

    def _take(self, entities: Sequence[Entity], cost: int) -> None:
        self._left -= cost
        for entity in entities:
            self.claims[entity.id] = [line for _, line in self._lines(entity)]

    def _take_top(self, entity: Entity) -> None:
        """The best connected member is always told of, its description and claims cut to the budget where they must be."""
        cost = self._entity_cost(entity)
        if cost > self._left:
            room = max(self._left - count_tokens(f"{entity.name} {entity.type}") - _MARKUP_TOKENS, 0)
            self.entities[entity.id] = msgspec.structs.replace(entity, description=truncate(entity.description, room))
            cost, self.cut = self._left, True
        self._left -= cost
        kept = self.claims[entity.id] = []
        for price, line in self._lines(entity):
            if price > self._left:
                self.cut = True
                continue
            self._left -= price
            kept.append(line)

    def _lines(self, entity: Entity) -> list[tuple[int, str]]:
        lines = [(claim.id, claim_line(claim, self.entities)) for claim in self._stated.get(entity.id, ())]
        return [(self._costs.of(id, line), line) for id, line in lines]

    def _entity_cost(self, entity: Entity) -> int:
        return self._costs.of(entity.id, entity.name, entity.type, entity.description)

    def _cost(self, entities: Sequence[Entity]) -> int:
        return sum(self._entity_cost(e) + sum(price for price, _ in self._lines(e)) for e in entities)
