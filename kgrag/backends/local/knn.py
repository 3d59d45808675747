"""Exact nearest neighbours by cosine: a scan over int8 codes picks candidates, float32 vectors decide.

Each vector is scaled to length 1 and coded as ``round(x / scale)`` with ``scale = max |x| / 127`` of its own. The error
of a coded product is a sum of independent roundings, of standard deviation ``sqrt((scale_row^2 + scale_query^2) / 12)``.
Some candidates give a lower bound of the last exact score; then every row coded within five deviations of it is
measured too, so the result is that of a float32 scan.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgrag.ports import Vector

_BLOCK = 8_192
"""Rows per packed block; a full block is packed once per process, whatever is appended later."""

_PACKED_BYTES = 128 << 20
"""Up to so many bytes of codes are held packed (about twice as fast to scan); beyond, the mapped file is scanned."""

_LEAST_CANDIDATES = 64
_SAMPLE = 16
_SIGMAS = 5.0
_ROUNDING = 1e-6
"""Of a float32 product."""


def quantized(vectors: Vector) -> tuple[Vector, NDArray[np.int8], Vector]:
    """(unit vectors, codes, scales) of an (n, d) matrix; a zero vector has scale 0."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)).astype(np.float32)[:, None]
    unit = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    scales = (np.maximum(unit.max(axis=1, initial=0), -unit.min(axis=1, initial=0)) / 127).astype(np.float32)
    inverse = np.divide(np.float32(1), scales, out=np.zeros_like(scales), where=scales > 0)
    return unit, np.rint(unit * inverse[:, None]).astype(np.int8), scales


class Codes:
    """The int8 codes of a collection, packed block by block as they are first scanned."""

    def __init__(self, codes: NDArray[np.int8], scales: Vector, before: Codes | None = None) -> None:
        self._codes = codes
        self._scales = scales
        self._blocks: dict[int, Any] = {}
        if before is not None:
            full = len(before._codes) // _BLOCK
            self._blocks = {block: packed for block, packed in list(before._blocks.items()) if block < full}
        self.largest_scale = float(scales.max()) if len(scales) else 0.0

    def products(self, query: Vector) -> tuple[Vector, float]:
        """(approximate cosine of every row with a unit query, its standard error at most)."""
        numkong = _numkong()
        assert numkong is not None  # without it ``nearest`` multiplies the float32 matrix
        _, code, scale = quantized(query[None])
        n = len(self._codes)
        scores = np.empty(n, np.float32)
        weight = scale[0]
        packed_query = None
        for start in range(0, n, _BLOCK):
            part = self._codes[start : start + _BLOCK]
            if self._codes.nbytes <= _PACKED_BYTES:
                block = self._blocks.get(start // _BLOCK)
                if block is None:
                    block = self._blocks[start // _BLOCK] = numkong.dots_pack(part)
                whole = np.asarray(numkong.dots_packed(code, block)).ravel()
            else:
                if packed_query is None:
                    packed_query = numkong.dots_pack(code)
                whole = np.asarray(numkong.dots_packed(part, packed_query)).ravel()
            np.multiply(whole.astype(np.float32), self._scales[start : start + _BLOCK], out=scores[start : start + _BLOCK])
        scores *= weight
        return scores, float(np.sqrt((self.largest_scale**2 + float(weight) ** 2) / 12))


def nearest(
    query: Vector,
    top_k: int,
    *,
    floats: Vector,
    codes: Codes,
    barred: NDArray[Any],
    among: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(places, cosines) of the best rows for a unit query, best first; every row that ties with the last is included.

    ``barred`` (places or a mask) are never returned; with ``among`` only those places are looked at."""
    if among is not None:
        return _best(among, exact(floats[among], query), top_k)
    scores, error = (floats @ query, 0.0) if _numkong() is None else codes.products(query)
    scores[barred] = -np.inf
    places, floor = _above(scores, max(_LEAST_CANDIDATES, 3 * top_k))
    places = places[np.isfinite(scores[places])]
    found, cosines = _best(places, exact(floats[places], query), top_k)
    if not np.isfinite(floor):
        return found, cosines
    within = cosines[top_k - 1] - _SIGMAS * error - _ROUNDING
    if floor <= within:
        return found, cosines
    places = np.flatnonzero(scores >= within)
    return _best(places, exact(floats[places], query), top_k)


def exact(vectors: Vector, query: Vector) -> NDArray[np.float64]:
    """Dot products that depend on the two vectors alone, not on where in the matrix a row stands (as a BLAS call's may),
    so that equal vectors tie."""
    if not len(vectors):
        return np.empty(0, np.float64)
    numkong = _numkong()
    if numkong is None:
        products: NDArray[np.float64] = np.einsum("ij,j->i", vectors, query, dtype=np.float64)
        return products
    return np.asarray(numkong.cdist(query[None], np.ascontiguousarray(vectors), "dot"), np.float64).ravel()


def _above(scores: NDArray[Any], wanted: int) -> tuple[NDArray[np.int64], float]:
    """(places of at least the ``wanted`` best scores, a bound on the score of every other place; -inf: there is none)."""
    n = len(scores)
    if wanted * 2 >= n:
        return np.arange(n), -np.inf
    # The quantile of a sample costs a tenth of a full partition; where the sample misled, the partition decides.
    sample = scores[::_SAMPLE]
    take = min(len(sample), wanted // _SAMPLE + 8)
    floor = np.partition(sample, len(sample) - take)[len(sample) - take]
    places = np.flatnonzero(scores >= floor)
    if not wanted <= len(places) <= 8 * wanted:
        floor = np.partition(scores, n - wanted)[n - wanted]
        places = np.flatnonzero(scores >= floor)
    return places, float(floor)


def _best(places: NDArray[np.int64], scores: NDArray[np.float64], top_k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    order = np.argsort(-scores, kind="stable")
    if len(order) > top_k:
        order = order[: np.searchsorted(-scores[order], -scores[order[top_k - 1]], side="right")]
    return places[order], scores[order]


@functools.cache
def _numkong() -> Any:
    """The module, or None where there is no build for this platform."""
    try:
        import numkong
    except ImportError:
        return None
    return numkong
