"""Writing the report of a community."""

from __future__ import annotations

from kgrag.records import Finding, Record


class ReportEntity(Record, frozen=True, kw_only=True):
    name: str
    type: str = ""
    description: str = ""
    rank: int = 0


class ReportRelationship(Record, frozen=True, kw_only=True):
    source: str
    target: str
    description: str = ""
    weight: float = 0.0


class SubReport(Record, frozen=True, kw_only=True):
    name: str
    rating: float
    summary: str


class ReportInput(Record, frozen=True, kw_only=True):
    """A community's packed context. ``claims`` are rendered lines; ``children`` the roll-up of sub-communities."""

    name: str
    entities: list[ReportEntity]
    relationships: list[ReportRelationship] = []
    claims: list[str] = []
    children: list[SubReport] = []
    language: str = ""


class ReportText(Record, frozen=True, kw_only=True):
    title: str
    summary: str
    rating: float = 0.0
    rating_explanation: str = ""
    findings: list[Finding] = []
