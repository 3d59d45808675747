"""Descriptions and reports: the sentences nearest to what all of them say."""

from __future__ import annotations

from math import log2

from kgrag.backends.local.extractive.salience import central, split
from kgrag.records import Finding
from kgrag.tasks.descriptions import DescriptionInput
from kgrag.tasks.reports import ReportEntity, ReportInput, ReportText
from kgrag.text import count_tokens, truncate

_DESCRIPTION_TOKENS = 256
"""Where the task names no length: the reference's length of a summarised description."""
_SUMMARY_TOKENS = 160
_FINDING_TOKENS = 96
_MOST_FINDINGS = 6
_TITLE_NAMES = 3
_TITLE_TOKENS = 40
_PER_DOUBLING = 1.5
"""How much the rating of a report grows with each doubling of its relationships."""
_HIGHEST = 10.0


def describe(input: DescriptionInput) -> str:
    """The lines, each once, where they fit ``max_tokens``; else their central sentences."""
    room = input.max_tokens or _DESCRIPTION_TOKENS
    whole = " ".join(dict.fromkeys(input.lines))
    if count_tokens(whole) <= room:
        return whole
    sentences = list(dict.fromkeys(sentence for line in sorted(input.lines) for sentence in split(line)))
    return " ".join(central(sentences, room)) or truncate(min(sentences, key=lambda s: (len(s), s)), room)


def report(input: ReportInput) -> ReportText:
    """A title of the best connected names, the central sentences as summary, and a finding per well-connected entity.
    The rating grows with the logarithm of the number of relationships."""
    entities = sorted(input.entities, key=lambda entity: (-entity.rank, entity.name))
    facts = [edge.description for edge in input.relationships if edge.description]
    facts += [entity.description for entity in entities if entity.description]
    facts += [*input.claims, *(child.summary for child in input.children if child.summary)]
    sentences = list(dict.fromkeys(sentence for fact in facts for sentence in split(fact)))
    names = [entity.name for entity in entities]
    edges = len(input.relationships)
    return ReportText(
        title=truncate(", ".join(names[:_TITLE_NAMES]), _TITLE_TOKENS) or input.name,
        summary=_summary(sentences, _SUMMARY_TOKENS) or ", ".join(names),
        rating=min(_HIGHEST, round(_PER_DOUBLING * log2(1 + edges + len(input.children)), 1)),
        rating_explanation=f"{len(names)} entities, {edges} relationships.",
        findings=_findings(input, entities),
    )


def _summary(sentences: list[str], room: int) -> str:
    if not sentences:
        return ""
    return " ".join(central(sentences, room)) or truncate(sentences[0], room)


def _findings(input: ReportInput, entities: list[ReportEntity]) -> list[Finding]:
    """What the community's relationships say of each of its best connected entities."""
    told: dict[str, list[str]] = {entity.name: [entity.description] if entity.description else [] for entity in entities}
    for edge in input.relationships:
        for name in (edge.source, edge.target):
            if edge.description and name in told:
                told[name].append(edge.description)
    findings = []
    for entity in entities[:_MOST_FINDINGS]:
        sentences = list(dict.fromkeys(sentence for fact in told[entity.name] for sentence in split(fact)))
        if sentences:
            findings.append(Finding(summary=entity.name, explanation=_summary(sentences, _FINDING_TOKENS)))
    return findings
