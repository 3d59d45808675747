"""Rescoring passages over the bridges between them: the second hop of a question, without a model call.

A passage that answers the second hop of a question often shares no word with it, but the best passages of the first hop
name what it is about. So the entities of the best few passages lend their score on: to the passages of the document
titled with the entity (its home), and, less, to the others that cite a rare entity. Passages that are already ranked
keep their scores; fusing the graph as a peer of the base ranking is known to hurt (graph-rescue, evidence), adding a
bonus to the base is what pays. ``benchmarks/retrieval.py`` measures it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log

from pydantic import Field

from kgrag.section import Section


class BridgeSettings(Section):
    """How far the best passages lend their scores to those they lead to. Values chosen on public multi-hop questions."""

    weight: float = Field(default=0.6, ge=0)
    """Share of a passage's score that the home of an entity it names can gain; 0 turns bridges off."""
    top_passages: int = Field(default=5, ge=1)
    """How many of the best passages build bridges."""
    decay: float = Field(default=3.0, ge=0)
    """How fast a passage's say falls with its distance from the best: exp(-decay * distance), scores being 0 to 1."""
    shared_weight: float = Field(default=0.5, ge=0)
    """What a passage gains that only shares an entity, relative to the entity's home; divided by log(1 + passages citing it)."""
    shared_frequency: int = Field(default=20, ge=1)
    """An entity cited by more passages than this bridges to its home only."""
    homes_per_entity: int = Field(default=3, ge=1)
    """Passages of a document that stand for the entity it is titled with: its best ranked ones."""
    asked_weight: float = Field(default=0.2, ge=0)
    """What the homes of entities named in the question gain, shared among them."""


def bridged(
    base: Mapping[str, float],
    cited: Mapping[str, Sequence[str]],
    lineage: Mapping[str, Sequence[str]],
    homes: Mapping[str, Sequence[str]],
    asked: Sequence[str],
    settings: BridgeSettings,
) -> dict[str, float]:
    """Scores of the passages of ``base`` and of those that bridges lead to.

    ``base`` maps text unit ids to scores from 0 to 1; ``cited`` gives the entities of its best passages, ``lineage`` the
    text units that cite an entity, ``homes`` those of the documents titled with it; ``asked`` are entities of the question."""
    best = best_passages(base, settings.top_passages)
    bonus: dict[str, float] = {}
    for unit in best:
        say = exp(settings.decay * (base[unit] - base[best[0]]))
        for entity in cited.get(unit, ()):
            for home in homes.get(entity, ()):
                if home != unit:
                    bonus[home] = max(bonus.get(home, 0.0), say)
            citing = lineage.get(entity, ())
            if 1 < len(citing) <= settings.shared_frequency:
                shared = say * settings.shared_weight / log(1 + len(citing))
                for other in citing:
                    if other != unit:
                        bonus[other] = max(bonus.get(other, 0.0), shared)
    scores = dict(base)
    for unit, gained in bonus.items():
        scores[unit] = scores.get(unit, 0.0) + settings.weight * gained
    for entity in asked:
        titled = homes.get(entity, ())
        for unit in titled:
            scores[unit] = scores.get(unit, 0.0) + settings.asked_weight / len(titled)
    return scores


def best_passages(base: Mapping[str, float], count: int) -> list[str]:
    """Ids by falling score, ties by id."""
    return sorted(base, key=lambda unit: (-base[unit], unit))[:count]
