"""Personalized PageRank over entities and passages, as HippoRAG 2 ranks passages.

After Gutiérrez et al., *From RAG to Memory* (ICML 2025, arXiv 2502.14802), in the bounded form of unified-kg-rag §6.4."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgrag.ports import Scored

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class PassageGraph:
    """Undirected: one node per entity and per passage, in id order with entities first. ``start[i]`` and ``end[i]`` are the
    nodes of arc i (each edge is two arcs), ``share[i]`` the part of its start's mass that it carries; parallel edges add up."""

    entities: list[str]
    passages: list[str]
    start: Ints
    end: Ints
    share: Floats
    dangling: Ints

    @classmethod
    def build(
        cls,
        entities: Iterable[str],
        passages: Iterable[str],
        edges: Iterable[tuple[str, str]],
        cites: Iterable[tuple[str, str]],
        *,
        edge_weight: float = 1.0,
    ) -> PassageGraph:
        """``edges`` join two entities (weight ``edge_weight`` each), ``cites`` an entity and a passage (weight 1).
        Self-loops, which only hold mass on their node, are dropped; so is an edge with an end that is no node."""
        entity_ids, passage_ids = sorted(set(entities)), sorted(set(passages))
        entity_at = {id: n for n, id in enumerate(entity_ids)}
        passage_at = {id: n for n, id in enumerate(passage_ids, len(entity_ids))}
        joined = [(entity_at[a], entity_at[b]) for a, b in edges if a != b and a in entity_at and b in entity_at]
        cited = [(entity_at[a], passage_at[b]) for a, b in cites if a in entity_at and b in passage_at]
        pairs = np.array(joined + cited, dtype=np.intp).reshape(-1, 2)
        weight = np.concatenate([np.full(len(joined), edge_weight), np.ones(len(cited))])
        start = np.concatenate([pairs[:, 0], pairs[:, 1]])
        end = np.concatenate([pairs[:, 1], pairs[:, 0]])
        weight = np.concatenate([weight, weight])
        size = len(entity_ids) + len(passage_ids)
        degree = np.bincount(start, weights=weight, minlength=size)
        return cls(entity_ids, passage_ids, start, end, weight / degree[start], np.flatnonzero(degree == 0))

    def reset(self, weights: Mapping[str, float]) -> Floats:
        """The reset vector of these weights per node id, normalised to sum 1 (all 0 where none has weight)."""
        vector = np.array([weights.get(id, 0.0) for id in (*self.entities, *self.passages)])
        total = vector.sum()
        return vector / total if total > 0 else vector

    def ranked_passages(self, scores: Floats) -> list[Scored]:
        """Passages with a score above 0, best first, ties by id."""
        mine = scores[len(self.entities) :]
        order = np.argsort(-mine, kind="stable")
        return [Scored(self.passages[n], float(mine[n])) for n in order if mine[n] > 0]


def personalized_pagerank(
    graph: PassageGraph, reset: Floats, *, damping: float = 0.5, max_iterations: int = 30, tolerance: float = 1e-6
) -> Floats:
    """One score per node, summing to 1: ``p = (1 - d) r + d (p P + (p . dangling) r)`` by power iteration, until the L1
    change is below ``tolerance``. The mass of a node without edges returns to the reset vector, as in igraph's PRPACK,
    which HippoRAG calls. A reset vector without mass gives zeros."""
    size = len(reset)
    scores = reset
    for _ in range(max_iterations):
        moved = np.bincount(graph.end, weights=scores[graph.start] * graph.share, minlength=size)
        back = float(scores[graph.dangling].sum()) if len(graph.dangling) else 0.0
        following = (1 - damping + damping * back) * reset + damping * moved
        change = float(np.abs(following - scores).sum())
        scores = following
        if change < tolerance:
            break
    return scores


def fact_seeds(facts: Sequence[tuple[float, str, str]], citations: Mapping[str, int], link_top_k: int | None) -> dict[str, float]:
    """Reset weights of entities from the facts ``(score, source, target)`` found for a question (HippoRAG 2's
    ``graph_search_with_fact_entities``): per entity the mean, over the facts that name it, of the fact's score relative to
    the best fact, divided by the number of passages that cite the entity (at least 1). Only the ``link_top_k`` best keep
    their score (None: all), ties by id. Entities missing from ``citations`` are not in the graph and take no place."""
    best = max((score for score, _, _ in facts), default=0.0)
    totals: dict[str, list[float]] = {}
    for score, source, target in facts:
        relative = score / best if best > 0 else 1.0
        for end in (source, target):
            if end in citations:
                totals.setdefault(end, []).append(relative / max(citations[end], 1))
    means = {id: sum(each) / len(each) for id, each in totals.items()}
    kept = sorted(means, key=lambda id: (-means[id], id))[:link_top_k]
    return {id: means[id] for id in kept}


def passage_seeds(hits: Sequence[Scored], weight: float) -> dict[str, float]:
    """Reset weights of passages: ``weight`` times the hit's score, min-max normalised over the hits (all 1 when they tie)."""
    if not hits:
        return {}
    scores = [hit.score for hit in hits]
    low, high = min(scores), max(scores)
    spread = high - low
    return {hit.id: weight * ((hit.score - low) / spread if spread > 0 else 1.0) for hit in hits}
