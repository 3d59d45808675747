"""The graph that communities are found in: undirected, one weighted edge per pair, as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Network:
    """``n`` nodes and their pairs: ``low[i] < high[i]``, each pair once, sorted by (low, high), weight above 0."""

    n: int
    low: Ints
    high: Ints
    weight: Floats

    @classmethod
    def of(cls, n: int, sources: Ints, targets: Ints, weights: Floats) -> Network:
        """Directed, repeated edges summed per unordered pair. Edges to oneself and pairs whose weights sum to 0 join nothing.
        The order of the edges does not matter, to the last bit of a sum."""
        low, high = np.minimum(sources, targets), np.maximum(sources, targets)
        apart = low != high
        low, high, weights = low[apart], high[apart], weights[apart]
        order = np.lexsort((weights, high, low))
        low, high, weights = low[order], high[order], weights[order]
        first = np.ones(len(low), dtype=bool)
        first[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
        starts = np.flatnonzero(first)
        sums = np.add.reduceat(weights, starts) if len(starts) else np.zeros(0)
        heavy = sums > 0
        return cls(n, low[starts][heavy], high[starts][heavy], sums[heavy])

    @property
    def total(self) -> float:
        return float(self.weight.sum())

    def components(self) -> Ints:
        """Per node the smallest node it is connected to."""
        return connected(self.n, self.low, self.high)

    def induced(self, nodes: Ints) -> Network:
        """The graph among ``nodes`` (sorted), which become 0, 1, ... in that order."""
        place = np.full(self.n, -1, dtype=np.int64)
        place[nodes] = np.arange(len(nodes))
        low, high = place[self.low], place[self.high]
        inside = (low >= 0) & (high >= 0)
        return Network(len(nodes), low[inside], high[inside], self.weight[inside])

    def quotient(self, labels: Ints, n: int) -> Network:
        """The graph whose nodes are the labels 0..n-1 and whose edges sum those between them; nodes labelled -1 are left out."""
        low, high = labels[self.low], labels[self.high]
        inside = (low >= 0) & (high >= 0)
        return Network.of(n, low[inside], high[inside], self.weight[inside])

    def csr(self) -> tuple[Ints, NDArray[np.int32], Floats]:
        """Row starts, columns and weights of the symmetric adjacency matrix."""
        rows = np.concatenate([self.low, self.high])
        columns = np.concatenate([self.high, self.low])
        order = np.lexsort((columns, rows))
        starts = np.zeros(self.n + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows, minlength=self.n), out=starts[1:])
        return starts, columns[order].astype(np.int32), np.concatenate([self.weight, self.weight])[order]


def network_of(vertices: Iterable[str], edges: Iterable[tuple[str, str, float]]) -> tuple[list[str], Network]:
    """Sorted ids and the graph over their positions. ``edges`` are (source id, target id, weight); ends that are no
    vertex become one."""
    rows = list(edges)
    ids = sorted({*vertices, *(row[0] for row in rows), *(row[1] for row in rows)})
    place = {id: i for i, id in enumerate(ids)}
    sources = np.fromiter((place[row[0]] for row in rows), np.int64, len(rows))
    targets = np.fromiter((place[row[1]] for row in rows), np.int64, len(rows))
    return ids, Network.of(len(ids), sources, targets, np.fromiter((row[2] for row in rows), np.float64, len(rows)))


def connected(n: int, low: Ints, high: Ints) -> Ints:
    """Per node the smallest node it is connected to by the pairs."""
    root = np.arange(n, dtype=np.int64)
    while len(low):
        a, b = root[low], root[high]
        apart = a != b
        if not apart.any():
            break
        low, high, a, b = low[apart], high[apart], a[apart], b[apart]
        np.minimum.at(root, np.maximum(a, b), np.minimum(a, b))
        while True:  # every node points at the root of its tree before pairs are compared again
            above = root[root]
            if np.array_equal(above, root):
                break
            root = above
    return root


def renumbered(labels: Ints) -> tuple[Ints, int]:
    """Labels as 0, 1, ... by their first node, and how many there are; -1 stays -1."""
    inside = labels >= 0
    _, first, inverse = np.unique(labels[inside], return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    out = np.full(len(labels), -1, dtype=np.int64)
    out[inside] = rank[inverse]
    return out, len(first)


def members(labels: Ints, n: int) -> Sequence[Ints]:
    """Per label 0..n-1 its nodes, sorted."""
    order = np.argsort(labels, kind="stable")
    bounds = np.searchsorted(labels[order], np.arange(n + 1))
    return [order[bounds[i] : bounds[i + 1]] for i in range(n)]
