"""What a search store must return, computed the plain way."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kgrag.filters import Filter, matches
from kgrag.ports import Row, Scored, Vector


def kept(rows: Mapping[str, Row], filter: Filter | None, ids: Sequence[str] | None) -> list[Row]:
    wanted = set(rows) if ids is None else set(ids)
    return [row for key, row in rows.items() if key in wanted and (filter is None or matches(filter, row.metadata or {}))]


def bm25(
    rows: Mapping[str, Row], tokens: Sequence[str], *, filter: Filter | None = None, ids: Sequence[str] | None = None
) -> list[Scored]:
    """Lucene's BM25, k1 1.2, b 0.75: every row that shares a token, best first, ties by id."""
    texts = {key: row.tokens.split() for key, row in rows.items() if row.tokens}
    average = sum(map(len, texts.values())) / max(1, len(texts))
    frequency = Counter(token for text in texts.values() for token in set(text))
    scored = []
    for row in kept(rows, filter, ids):
        text = texts.get(row.id, [])
        score = 0.0
        for token in tokens:
            count = text.count(token)
            idf = math.log(1 + (len(texts) - frequency[token] + 0.5) / (frequency[token] + 0.5))
            score += idf * count / (count + 1.2 * (0.25 + 0.75 * len(text) / average)) if count else 0.0
        if score:
            scored.append(Scored(row.id, score))
    return ranked(scored)


def cosines(
    rows: Mapping[str, Row], vector: Vector, *, filter: Filter | None = None, ids: Sequence[str] | None = None
) -> list[Scored]:
    """Every row that has a direction, best first, ties by id."""
    query = np.asarray(vector, np.float64)
    scored = []
    for row in kept(rows, filter, ids):
        if row.vector is not None and row.vector.any() and query.any():
            held = np.asarray(row.vector, np.float64)
            scored.append(Scored(row.id, float(held @ query / np.linalg.norm(held) / np.linalg.norm(query))))
    return ranked(scored)


def ranked(scored: Iterable[Scored]) -> list[Scored]:
    return sorted(scored, key=lambda s: (-s.score, s.id))


def same_ranking(found: Sequence[Scored], expected: Sequence[Scored], top_k: int, *, tolerance: float) -> None:
    """Asserts equal scores, and equal ids but where scores are closer than the tolerance."""
    best = expected[:top_k]
    assert len(found) == len(best)
    scores = {s.id: s.score for s in expected}
    for have, want in zip(found, best, strict=True):
        assert abs(have.score - want.score) <= tolerance
        assert abs(scores[have.id] - want.score) <= tolerance
    assert len({s.id for s in found}) == len(found)
    for one, next_one in itertools.pairwise(found):
        assert (-one.score, one.id) < (-next_one.score, next_one.id)
