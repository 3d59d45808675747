"""Bridges between passages: the second hop of a question, without a model call.

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
    """What the home of an entity can gain, against the 1 of the best passage; 0 turns bridges off."""
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
    """What the homes of an entity named in the question gain, divided among them."""


def bridged(
    best: Mapping[str, float],
    cited: Mapping[str, Sequence[str]],
    lineage: Mapping[str, Sequence[str]],
    homes: Mapping[str, Sequence[str]],
    settings: BridgeSettings,
) -> dict[str, float]:
    """What each text unit gains, from 0 to 1; one that several bridges lead to gains by the strongest.

    ``best`` maps the ids of the best passages to their scores (0 to 1); ``cited`` gives their entities, ``lineage`` the text
    units that cite an entity, ``homes`` those of the documents titled with it."""
    gained: dict[str, float] = {}
    top = max(best.values(), default=0.0)
    for unit, score in best.items():
        say = exp(settings.decay * (score - top))
        for entity in cited.get(unit, ()):
            leads: dict[str, float] = {}
            citing = lineage.get(entity, ())
            if 1 < len(citing) <= settings.shared_frequency:
                leads = dict.fromkeys(citing, say * settings.shared_weight / log(1 + len(citing)))
            leads.update(dict.fromkeys(homes.get(entity, ()), say))
            for other, gain in leads.items():
                if other != unit and gain > gained.get(other, 0.0):
                    gained[other] = gain
    return gained


def shared_out(homes: Mapping[str, Sequence[str]], named: Sequence[str]) -> dict[str, float]:
    """What the homes of named entities gain, from 0 to 1: each entity's 1 is divided among its homes, and a unit that is
    the home of several takes the largest."""
    gained: dict[str, float] = {}
    for entity in named:
        titled = homes.get(entity, ())
        for unit in titled:
            gained[unit] = max(gained.get(unit, 0.0), 1 / len(titled))
    return gained
