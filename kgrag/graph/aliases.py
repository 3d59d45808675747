"""Spellings that are similar enough to be one name: opt-in, because similarity also joins different things that share
most of their name (unified-kg-rag §4.2)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from kgrag.graph.resolve import Resolver
from kgrag.ids import schema_key
from kgrag.records import UnitRecord
from kgrag.text import is_dense

_ROMAN = re.compile(r"m{0,3}(cm|cd|d?c{0,3})(xc|xl|l?x{0,3})(ix|iv|v?i{0,3})")


def fuzzy_aliases(types: Mapping[str, str], threshold: float) -> dict[str, str]:
    """Group keys that are taken for another one, each with the smallest key of its group. ``types`` gives every group
    key's type (empty: unknown; give empty ones where types tell entities apart by themselves).

    Two keys link when the Jaccard similarity of their character trigrams is above ``threshold``, their discriminators
    (``discriminators``) are equal, their types are equal or one is unknown and, where one ends in Han, Hangul or Kana, both
    end alike. Links are followed from the most similar on, and never put two different types in one group.
    The aliases of keys that no chain of links connects to a change do not change."""
    group = {key: key for key in types}
    typed = {key: schema_key(label) for key, label in types.items()}
    for _, a, b in sorted(_links(typed, threshold)):
        one, other = _root(group, a), _root(group, b)
        if one == other or (typed[one] and typed[other] and typed[one] != typed[other]):
            continue
        keep, gone = min(one, other), max(one, other)
        group[gone] = keep
        typed[keep] = typed[keep] or typed[gone]
    return {key: root for key in sorted(group) if (root := _root(group, key)) != key}


def key_types(records: Iterable[UnitRecord], resolver: Resolver) -> dict[str, str]:
    """Every group key that the records name, with its most stated type (the smallest on a tie; empty where none is stated):
    what ``fuzzy_aliases`` compares. ``resolver`` is one that joins nothing yet."""
    votes: dict[str, Counter[str]] = {}
    for record in records:
        for entity in record.entities:
            votes.setdefault(resolver.key(entity.name), Counter())[schema_key(entity.type)] += 1
        for relationship in record.relationships:
            for end in (relationship.source, relationship.target):
                votes.setdefault(resolver.key(end), Counter())
    typed = resolver.settings.identity == "name"
    return {
        key: min((label for label in count if label), key=lambda label: (-count[label], label), default="") if typed else ""
        for key, count in votes.items()
        if key
    }


def discriminators(key: str) -> list[str]:
    """The words that tell otherwise similar names apart: those with a digit, single letters, Roman numerals."""
    return sorted(w for w in key.split() if (len(w) == 1 and w.isalpha()) or any(c.isdigit() for c in w) or _ROMAN.fullmatch(w))


def _links(types: Mapping[str, str], threshold: float) -> Iterator[tuple[float, str, str]]:
    """(-similarity, a, b) of every pair that may be one name, a < b.

    Exact and near linear by prefix filtering (Chaudhuri et al. 2006; positions as in PPJoin, Xiao et al. 2008): of two sets
    above the threshold, the rarest elements of each hold a common one, so only those are indexed, and only for keys of
    the same discriminators and dense ending."""
    shingles = {key: _trigrams(key) for key in types}
    frequency = Counter(s for own in shingles.values() for s in own)
    rank = {s: i for i, s in enumerate(sorted(frequency, key=lambda s: (frequency[s], s)))}
    index: dict[tuple[object, int], list[tuple[str, int, int]]] = {}
    for key in sorted(shingles, key=lambda key: (len(shingles[key]), key)):
        own = shingles[key]
        size = len(own)
        ordered = sorted(map(rank.__getitem__, own))
        block = (*discriminators(key), key[-1] if is_dense(key[-1]) else "")
        near: dict[str, bool] = {}
        for place, shingle in enumerate(ordered[: size - math.ceil(threshold * size) + 1]):
            for other, length, position in index.get((block, shingle), ()):
                if other not in near and length >= threshold * size:
                    needed = threshold / (1 + threshold) * (size + length)
                    near[other] = min(size - place, length - position) >= needed
        for other, possible in near.items():
            if not possible or (types[key] and types[other] and types[key] != types[other]):
                continue
            both = len(own & shingles[other])
            similarity = both / (size + len(shingles[other]) - both)
            if similarity > threshold:
                yield -similarity, min(key, other), max(key, other)
        for place, shingle in enumerate(ordered[: size - math.ceil(2 * threshold / (1 + threshold) * size) + 1]):
            index.setdefault((block, shingle), []).append((key, size, place))


def _trigrams(key: str) -> frozenset[str]:
    padded = f"  {key} "
    return frozenset(padded[i : i + 3] for i in range(len(padded) - 2))


def _root(group: dict[str, str], key: str) -> str:
    while group[key] != key:
        group[key] = group[group[key]]
        key = group[key]
    return key
