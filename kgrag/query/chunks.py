"""Which of the text units that matched entities or relationships cite are read: LightRAG's two ways of picking."""

from __future__ import annotations

from collections.abc import Sequence


def weighted_polling(counts: Sequence[int], most: int, least: int = 1) -> list[tuple[int, int]]:
    """Positions ``(item, chunk)`` to take from items that hold ``counts[item]`` chunks each, items best first.

    LightRAG's ``WEIGHT`` (``utils.pick_by_weighted_polling``): item i of n may take round(most - i / (n - 1) * (most -
    least)) chunks from its front; then each place left unused goes to the first item that still has chunks."""
    n = len(counts)
    if n == 0:
        return []
    if n == 1:
        return [(0, chunk) for chunk in range(min(most, counts[0]))]
    quotas = [round(most - item / (n - 1) * (most - least)) for item in range(n)]
    taken = [min(quota, count) for quota, count in zip(quotas, counts, strict=True)]
    picked = [(item, chunk) for item, many in enumerate(taken) for chunk in range(many)]
    unused = sum(quotas) - len(picked)
    for item in range(n):
        more = min(unused, counts[item] - taken[item])
        picked.extend((item, chunk) for chunk in range(taken[item], taken[item] + more))
        unused -= more
    return picked


def pick_weighted(lineages: Sequence[Sequence[str]], most: int, left_out: frozenset[str] = frozenset()) -> list[str]:
    """Text unit ids picked by weighted polling, each once. A unit counts for the first item that cites it; a lineage is read
    in id order, so that the pick does not depend on the order in which documents arrived (unified-kg-rag §6.2)."""
    seen = set(left_out)
    pools: list[list[str]] = []
    for lineage in lineages:
        mine = [id for id in sorted(lineage) if id not in seen]
        seen.update(mine)
        if mine:
            pools.append(mine)
    return [pools[item][chunk] for item, chunk in weighted_polling([len(pool) for pool in pools], most)]
