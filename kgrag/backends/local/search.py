"""SearchStore: rows from SQLite, rankings from the search files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kgrag.backends.local import knn
from kgrag.backends.local.columns import ID_BYTES, Columns
from kgrag.backends.local.database import Database
from kgrag.backends.local.projections import Projections
from kgrag.backends.local.rows import Rows, checked, wrong_dimension
from kgrag.errors import StoreError
from kgrag.filters import Filter
from kgrag.ports import Collection, Scored, Vector

if TYPE_CHECKING:
    from kgrag.backends.local.lexical import Lexical

_SLACK = 8
"""Hits read beyond ``top_k``, so that a tie at the cut rarely needs a second look."""

_GATHERED_SHARE = 0.04
"""A filter that lets through no larger share has its vectors gathered; else the whole scan is masked."""


class LocalSearch(Rows):
    """``kgrag.ports.SearchStore``. A row is visible to ``lexical`` and ``nearest`` from the refresh after its commit."""

    def __init__(self, database: Database, folder: Path, dimension: int | None = None) -> None:
        super().__init__(database, dimension)
        self._projections = Projections(folder, database)

    def refresh(self) -> None:
        if self._projections.refresh():
            self.tidy()

    def rebuild(self) -> None:
        """Write every search file anew from the rows."""
        self._projections.refresh(anew=True)

    # ------------------------------------------------------------ lexical

    def lexical(
        self,
        collection: Collection,
        tokens: Sequence[str],
        top_k: int,
        *,
        filter: Filter | None = None,
        ids: Sequence[str] | None = None,
    ) -> list[Scored]:
        opened = self._projections.both(checked(collection))
        if opened is None or top_k <= 0 or not tokens:
            return []
        columns, index = opened
        passing = None if filter is None else self._passing_places(columns, filter)
        if ids is not None:
            places = self._places(collection, columns, ids)
            if passing is not None:
                places = places[passing[places]]
            return self._listed(collection, index, columns, tokens, top_k, places)
        if passing is None:
            return self._lexical(collection, index, columns, tokens, top_k, None, 1.0)
        passing &= columns.alive
        count = int(np.count_nonzero(passing))
        # Either the rows that pass are listed to the index, or hits are read until enough have passed: what is shorter.
        share = count / max(1, len(passing))
        if count <= _hits_to_read(top_k, share):
            return self._listed(collection, index, columns, tokens, top_k, np.flatnonzero(passing))
        return self._lexical(collection, index, columns, tokens, top_k, passing, share)

    def _listed(
        self, collection: str, index: Lexical, columns: Columns, tokens: Sequence[str], top_k: int, places: NDArray[np.int64]
    ) -> list[Scored]:
        """The best among these places."""
        if not len(places):
            return []
        slots = columns.slots[places].tolist()
        limit = min(top_k + _SLACK, len(slots))
        while True:
            hits = index.search(tokens, limit, slots)
            if len(hits) < limit or limit == len(slots) or hits[-1][0] < hits[top_k - 1][0]:
                return self._ranked(collection, columns, hits, top_k)
            limit = min(4 * limit, len(slots))

    def _lexical(
        self,
        collection: str,
        index: Lexical,
        columns: Columns,
        tokens: Sequence[str],
        top_k: int,
        passing: NDArray[np.bool_] | None,
        share: float,
    ) -> list[Scored]:
        """The best of all rows, or of those at the places that pass, by reading hits until enough have."""
        limit = _hits_to_read(top_k, share)
        while True:
            hits = index.search(tokens, limit)
            kept = hits
            if passing is not None:
                places = columns.places_of_slots([slot for _, slot in hits])
                allowed = set(columns.slots[places[passing[places]]].tolist())
                kept = [hit for hit in hits if hit[1] in allowed]
            if len(hits) < limit or (len(kept) >= top_k and hits[-1][0] < kept[top_k - 1][0]):
                return self._ranked(collection, columns, kept, top_k)
            limit *= 4

    def _ranked(self, collection: str, columns: Columns, hits: Sequence[tuple[float, int]], top_k: int) -> list[Scored]:
        places = columns.places_of_slots([slot for _, slot in hits])
        held = dict(zip(columns.slots[places].tolist(), self._ids(collection, columns, places), strict=True))
        scored = [Scored(held[slot], score) for score, slot in hits if held.get(slot)]
        scored.sort(key=_rank)
        return scored[:top_k]

    # ------------------------------------------------------------ nearest

    def nearest(
        self, collection: Collection, vector: Vector, top_k: int, *, filter: Filter | None = None, ids: Sequence[str] | None = None
    ) -> list[Scored]:
        columns = self._projections.columns(checked(collection))
        query = np.asarray(vector, np.float32)
        if columns is None or top_k <= 0 or not columns.state.dimension:
            return []
        if query.shape != (columns.state.dimension,):
            raise wrong_dimension("the query", query.shape, columns.state.dimension)
        length = float(np.sqrt(np.dot(query, query)))
        if not math.isfinite(length):
            raise StoreError("The query's vector holds NaN or infinity.", subject=collection, remedy="Check the embedding model.")
        if not length:
            return []
        query = np.ascontiguousarray(query / np.float32(length))
        barred, among = self._looked_at(collection, columns, filter, ids)
        places, cosines = knn.nearest(query, top_k, floats=columns.floats, codes=columns.codes, barred=barred, among=among)
        found = self._ids(collection, columns, places)
        scored = [Scored(key, score) for key, score in zip(found, cosines.tolist(), strict=True) if key]
        scored.sort(key=_rank)
        return scored[:top_k]

    def _looked_at(
        self, collection: str, columns: Columns, filter: Filter | None, ids: Sequence[str] | None
    ) -> tuple[NDArray[np.int64] | NDArray[np.bool_], NDArray[np.int64] | None]:
        """(what a scan must leave out, the only places to look at or None for a scan)."""
        barred: NDArray[np.int64] | NDArray[np.bool_] = columns.unsearchable
        if filter is None and ids is None:
            return barred, None
        passing = None if filter is None else self._passing_places(columns, filter)
        if ids is not None:
            among = self._places(collection, columns, ids)
            among = among[columns.scales[among] > 0]
            return barred, among if passing is None else among[passing[among]]
        assert passing is not None
        passing[barred] = False
        if np.count_nonzero(passing) <= _GATHERED_SHARE * len(passing):
            return barred, np.flatnonzero(passing)
        return ~passing, None

    # ------------------------------------------------------------ places and ids

    def _passing_places(self, columns: Columns, filter: Filter) -> NDArray[np.bool_]:
        """Whether the metadata at each place passes; a fresh array."""
        return self.mask(filter)[columns.metadata]

    def _places(self, collection: str, columns: Columns, ids: Sequence[str]) -> NDArray[np.int64]:
        """Places of those ids that are alive, each once."""
        short = [key for key in ids if len(key) <= ID_BYTES and key.isascii()]
        places = columns.places_of_ids(short)
        if len(short) < len(ids):
            long = columns.places_of_slots(self._slots_of(collection, [k for k in ids if len(k) > ID_BYTES or not k.isascii()]))
            places = np.concatenate([places, long[columns.alive[long]]])
        return np.unique(places)

    def _ids(self, collection: str, columns: Columns, places: NDArray[np.int64]) -> list[str]:
        """Ids at these places; empty where a long one was removed since the refresh."""
        found = [key.decode("ascii") for key in columns.ids[places].tolist()]
        if "" in found:
            slots = columns.slots[places].tolist()
            held = self._ids_of(collection, [slot for key, slot in zip(found, slots, strict=True) if not key])
            found = [key or held.get(slot, "") for key, slot in zip(found, slots, strict=True)]
        return found


def _hits_to_read(top_k: int, share: float) -> int:
    """How many hits are likely to hold ``top_k`` that pass, where this share of the rows does."""
    return _SLACK + (top_k if share == 1.0 else math.ceil(1.2 * top_k / share) if share else 0)


def _rank(scored: Scored) -> tuple[float, str]:
    return -scored.score, scored.id
