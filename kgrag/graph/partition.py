"""One level of communities: Leiden, then the bounds that a report needs."""

from __future__ import annotations

import heapq
from collections import defaultdict

import numpy as np

from kgrag.graph.network import Ints, Network, connected, members, renumbered


def leiden(network: Network, *, seed: int, resolution: float = 1.0) -> Ints:
    """Modularity communities (Traag et al. 2019, graspologic's implementation), each connected, numbered by their
    smallest node. The same network, seed and resolution always give the same labels."""
    if not len(network.low):
        return np.arange(network.n, dtype=np.int64)
    import graspologic_native

    _, found = graspologic_native.leiden_csr(*network.csr(), network.n, resolution=resolution, seed=seed)
    labels = np.empty(network.n, dtype=np.int64)
    labels[np.fromiter(found.keys(), np.int64, len(found))] = np.fromiter(found.values(), np.int64, len(found))
    return split_apart(network, labels)


def leiden_from(network: Network, start: Ints, *, seed: int, resolution: float) -> Ints:
    """As ``leiden``, started from the labels of an earlier partition instead of single nodes."""
    if not len(network.low):
        return np.arange(network.n, dtype=np.int64)
    import graspologic_native

    edges = [
        (str(a), str(b), w) for a, b, w in zip(network.low.tolist(), network.high.tolist(), network.weight.tolist(), strict=True)
    ]
    linked = np.unique(np.concatenate([network.low, network.high]))
    first, _ = renumbered(start[linked])
    begin = {str(node): label for node, label in zip(linked.tolist(), first.tolist(), strict=True)}
    _, found = graspologic_native.leiden(edges, starting_communities=begin, resolution=resolution, seed=seed)
    labels = np.arange(network.n, dtype=np.int64) + network.n
    labels[linked] = [found[str(node)] for node in linked.tolist()]
    return split_apart(network, labels)


def split_apart(network: Network, labels: Ints) -> Ints:
    """Labels whose communities are each connected, numbered by their smallest node."""
    inside = labels[network.low] == labels[network.high]
    root = connected(network.n, network.low[inside], network.high[inside])
    root[labels < 0] = -1
    return renumbered(root)[0]


def split_large(network: Network, labels: Ints, largest: int, *, seed: int) -> Ints:
    """Partition each community of more than ``largest`` nodes again on its own subgraph, until none is larger or
    modularity does not divide it."""
    inside = (labels[network.low] == labels[network.high]) & (labels[network.low] >= 0)
    owner = labels[network.low][inside]
    order = np.argsort(owner, kind="stable")
    low, high, weight = network.low[inside][order], network.high[inside][order], network.weight[inside][order]
    bounds = np.searchsorted(owner[order], np.arange(labels.max(initial=-1) + 2))
    out = labels.copy()
    unused = int(labels.max(initial=-1)) + 1
    for label, nodes in enumerate(members(np.where(labels < 0, len(labels), labels), len(bounds) - 1)):
        if len(nodes) <= largest:
            continue
        own = slice(bounds[label], bounds[label + 1])
        place = np.searchsorted(nodes, low[own]), np.searchsorted(nodes, high[own])
        pending = [(nodes, Network(len(nodes), *place, weight[own]))]
        while pending:
            part, graph = pending.pop()
            found = leiden(graph, seed=seed)
            count = int(found.max()) + 1
            if count == 1:
                continue
            for piece in members(found, count):
                out[part[piece]] = unused
                unused += 1
                if len(piece) > largest:
                    pending.append((part[piece], graph.induced(piece)))
    return renumbered(out)[0]


def merge_small(network: Network, labels: Ints, smallest: int, largest: int) -> Ints:
    """Join each community of fewer than ``smallest`` nodes to the neighbour it has most weight with (the one of the
    smallest node on a tie), one with room for it first. The smallest communities go first."""
    labels, n = renumbered(labels)
    merging = _Merging(network, labels, n)
    small = [(size, label) for label, size in enumerate(merging.sizes) if size < smallest]
    heapq.heapify(small)
    while small:
        size, label = heapq.heappop(small)
        near = merging.near[label]
        if not merging.alive(label) or merging.sizes[label] != size or not near:
            continue
        target = min(near, key=lambda other: (merging.sizes[other] + size > largest, -near[other], other))
        keep = merging.join(label, target)
        if merging.sizes[keep] < smallest:
            heapq.heappush(small, (merging.sizes[keep], keep))
    return merging.labels()


def rejoin(network: Network, labels: Ints, largest: int, *, resolution: float) -> Ints:
    """Join neighbours while modularity gains and their union has at most ``largest`` nodes, the greatest gain first."""
    labels, n = renumbered(labels)
    merging = _Merging(network, labels, n)
    degree = np.bincount(network.low, network.weight, network.n) + np.bincount(network.high, network.weight, network.n)
    strength: list[float] = np.bincount(labels[labels >= 0], degree[labels >= 0], n).tolist()
    scale = resolution / (2 * network.total) if network.total else 0.0

    def gain(a: int, b: int) -> float:
        return merging.near[a][b] - strength[a] * strength[b] * scale

    pairs = [(-gain(a, b), a, b) for a in range(n) for b in merging.near[a] if a < b]
    heapq.heapify(pairs)
    while pairs:
        loss, a, b = heapq.heappop(pairs)
        if loss >= 0:
            break
        if not (merging.alive(a) and merging.alive(b)) or merging.sizes[a] + merging.sizes[b] > largest or loss != -gain(a, b):
            continue
        keep = merging.join(a, b)
        strength[keep] = strength[a] + strength[b]
        for other in merging.near[keep]:
            heapq.heappush(pairs, (-gain(keep, other), min(keep, other), max(keep, other)))
    return merging.labels()


class _Merging:
    """Communities that are being joined: of two, the one of the smaller label stays."""

    def __init__(self, network: Network, labels: Ints, n: int) -> None:
        self._labels = labels
        self._into = list(range(n))
        self.sizes: list[int] = np.bincount(labels[labels >= 0], minlength=n).tolist()
        self.near: dict[int, dict[int, float]] = defaultdict(dict)
        graph = network.quotient(labels, n)
        for a, b, weight in zip(graph.low.tolist(), graph.high.tolist(), graph.weight.tolist(), strict=True):
            self.near[a][b] = self.near[b][a] = weight

    def alive(self, label: int) -> bool:
        return self._into[label] == label

    def join(self, a: int, b: int) -> int:
        keep, gone = min(a, b), max(a, b)
        self._into[gone] = keep
        self.sizes[keep] += self.sizes[gone]
        for other, weight in self.near.pop(gone).items():
            del self.near[other][gone]
            if other != keep:
                self.near[keep][other] = self.near[other][keep] = self.near[keep].get(other, 0.0) + weight
        return keep

    def labels(self) -> Ints:
        for label, target in enumerate(self._into):  # targets are smaller, so each is settled before
            self._into[label] = self._into[target]
        into = np.asarray(self._into, dtype=np.int64)
        return renumbered(np.where(self._labels < 0, -1, into[self._labels]) if len(into) else self._labels)[0]
