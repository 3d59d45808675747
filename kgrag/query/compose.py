"""From a strategy's rankings to sections of hits: fusion, filters, diversity, quotas, and bodies last."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kgrag.filters import All
from kgrag.query.found import Found
from kgrag.query.fuse import Fused, Leg, diversify, fuse
from kgrag.query.hits import read_section
from kgrag.query.question import Question
from kgrag.query.settings import SearchSettings
from kgrag.records import Hit, HitKind, Section
from kgrag.text import count_tokens


async def compose(question: Question, found: Found, settings: SearchSettings, kinds: Sequence[HitKind]) -> list[Section]:
    """Sections in the order of ``kinds``, each cut to its quota, empty ones left out."""
    by_kind: dict[HitKind, list[Leg]] = {}
    for leg in found.legs:
        by_kind.setdefault(leg.kind, []).append(leg)
    sections: list[Section] = []
    for kind in kinds:
        if kind == "point":
            section = _points(found)
        elif kind in by_kind:
            section = await _section(question, kind, by_kind[kind], settings)
            if kind == "report" and found.evidence_tokens is not None:
                section = _capped(section, found.evidence_tokens)
        else:
            continue
        if section.hits:
            sections.append(section)
    return sections


async def _section(question: Question, kind: HitKind, legs: Sequence[Leg], settings: SearchSettings) -> Section:
    fusion = settings.fusion
    ranked = fuse(legs, method=fusion.method, rrf_k=fusion.rrf_k, weights=fusion.weights)
    if kind != "text_unit":
        section = await read_section(question, kind, ranked, settings.quotas.get(kind, question.top_k))
        return await _stated_by_one(question, section)
    if fusion.diversity_lambda < 1:
        ranked = await _diverse(question, ranked, settings)
    return await read_section(question, kind, ranked, question.top_k)


async def _diverse(question: Question, ranked: Sequence[Fused], settings: SearchSettings) -> list[Fused]:
    pool = ranked[: question.top_k * settings.fusion.diversity_pool]
    ids = [item.id for item in pool]
    vectors = await question.access.one(lambda: question.access.search.vectors("text_units", ids))
    return diversify(pool, vectors, question.top_k, settings.fusion.diversity_lambda)


async def _stated_by_one(question: Question, section: Section) -> Section:
    """Under several filter fields, an item must be stated by one document that passes them all: its own fields are the
    union over its documents, where each may have passed by another one."""
    where = question.filter
    if not isinstance(where, All) or not section.hits:
        return section
    lineage = sorted({unit for hit in section.hits for unit in hit.text_unit_ids})
    passing = await question.access.one(lambda: question.access.search.passing("text_units", lineage, where))
    kept = [hit for hit in section.hits if not passing.isdisjoint(hit.text_unit_ids)]
    return Section(kind=section.kind, hits=[msgspec.structs.replace(hit, rank=n) for n, hit in enumerate(kept, 1)])


def _points(found: Found) -> Section:
    hits = [
        Hit(kind="point", id=f"point-{n}", score=point.score, rank=n, text=point.text, text_unit_ids=list(point.text_unit_ids))
        for n, point in enumerate(found.points, 1)
    ]
    return Section(kind="point", hits=hits)


def _capped(section: Section, tokens: int) -> Section:
    """Whole reports, best first, as many as fit."""
    kept: list[Hit] = []
    for hit in section.hits:
        tokens -= count_tokens(hit.text)
        if tokens < 0:
            break
        kept.append(hit)
    return Section(kind=section.kind, hits=kept)
