"""SearchStore: rows in SQLite (the truth)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from kgrag.backends.local.database import Database
from kgrag.errors import ConfigurationError, StoreError
from kgrag.filters import Filter, matches
from kgrag.ports import COLLECTIONS, Collection, Row, Scored, Vector
from kgrag.records import Metadata

_TABLES = "".join(
    f"CREATE TABLE {c} (id TEXT PRIMARY KEY, body BLOB NOT NULL, tokens TEXT NOT NULL, metadata BLOB NOT NULL,"
    f" digest TEXT NOT NULL, vector BLOB);"
    for c in COLLECTIONS
)
SCHEMA = _TABLES


class LocalSearch:
    def __init__(self, database: Database) -> None:
        self._db = database
        self._cache: dict[str, Any] = {}

    def upsert(self, collection: Collection, rows: Iterable[Row]) -> None:
        with self._db.transaction():
            for row in rows:
                vector = None if row.vector is None else np.asarray(row.vector, np.float32).tobytes()
                if row.vector is None and row.vector_digest:
                    held = self._db.rows(f"SELECT vector FROM {collection} WHERE id=? AND digest=?", (row.id, row.vector_digest))
                    if not held:
                        raise StoreError(f"No vector is held for {row.id}.", subject=row.id, remedy="Give the vector.")
                    vector = held[0][0]
                self._db.execute(
                    f"INSERT OR REPLACE INTO {collection} VALUES (?,?,?,?,?,?)",
                    (row.id, row.body, row.tokens, msgspec.json.encode(row.metadata or {}), row.vector_digest, vector),
                )

    def delete(self, collection: Collection, ids: Iterable[str]) -> None:
        with self._db.transaction():
            self._db.execute_in(f"DELETE FROM {collection} WHERE id IN (?)", list(ids))

    def get(self, collection: Collection, ids: Sequence[str]) -> dict[str, bytes]:
        return dict(self._db.rows_in(f"SELECT id, body FROM {collection} WHERE id IN (?)", ids))

    def vectors(self, collection: Collection, ids: Sequence[str]) -> dict[str, Vector]:
        found = self._db.rows_in(f"SELECT id, vector FROM {collection} WHERE vector IS NOT NULL AND id IN (?)", ids)
        return {key: np.frombuffer(blob, np.float32) for key, blob in found}

    def vector_digests(self, collection: Collection, ids: Sequence[str]) -> dict[str, str]:
        return dict(self._db.rows_in(f"SELECT id, digest FROM {collection} WHERE digest<>'' AND id IN (?)", ids))

    def lexical(
        self,
        collection: Collection,
        tokens: Sequence[str],
        top_k: int,
        *,
        filter: Filter | None = None,
        ids: Sequence[str] | None = None,
    ) -> list[Scored]:
        docs = [(i, t.split(" ") if t else []) for i, t, _, _ in self._rows(collection)]
        average = sum(len(t) for _, t in docs) / max(1, len(docs))
        df = Counter(t for _, ts in docs for t in set(ts))
        keep = self._keep(collection, filter, ids)
        out = []
        for key, words in docs:
            if key not in keep:
                continue
            score = 0.0
            for token in tokens:
                tf = words.count(token)
                if tf:
                    idf = math.log(1 + (len(docs) - df[token] + 0.5) / (df[token] + 0.5))
                    score += idf * tf / (tf + 1.2 * (1 - 0.75 + 0.75 * len(words) / average))
            if score:
                out.append(Scored(key, score))
        return sorted(out, key=lambda s: (-s.score, s.id))[:top_k]

    def nearest(
        self, collection: Collection, vector: Vector, top_k: int, *, filter: Filter | None = None, ids: Sequence[str] | None = None
    ) -> list[Scored]:
        keep = self._keep(collection, filter, ids)
        out = []
        norm = float(np.linalg.norm(vector))
        for key, _, _, blob in self._rows(collection):
            if blob is None or key not in keep or not norm:
                continue
            held = np.frombuffer(blob, np.float32)
            if held.shape != vector.shape:
                raise ConfigurationError("Wrong dimension.")
            length = float(np.linalg.norm(held))
            if length:
                out.append(Scored(key, float(held @ vector) / norm / length))
        return sorted(out, key=lambda s: (-s.score, s.id))[:top_k]

    def passing(self, collection: Collection, ids: Sequence[str], filter: Filter) -> set[str]:
        found = self._db.rows_in(f"SELECT id, metadata FROM {collection} WHERE id IN (?)", ids)
        return {key for key, metadata in found if matches(filter, msgspec.json.decode(metadata, type=Metadata))}

    def scan(self, collection: Collection, *, after: str = "", limit: int = 1000) -> list[tuple[str, bytes]]:
        return self._db.rows(f"SELECT id, body FROM {collection} WHERE id>? ORDER BY id LIMIT ?", (after, limit))

    def count(self, collection: Collection) -> int:
        return int(self._db.rows(f"SELECT count(*) FROM {collection}")[0][0])

    def refresh(self) -> None:
        self._cache.clear()

    def _rows(self, collection: str) -> list[Any]:
        if collection not in self._cache:
            self._cache[collection] = self._db.rows(f"SELECT id, tokens, metadata, vector FROM {collection}")
        found: list[Any] = self._cache[collection]
        return found

    def _keep(self, collection: str, filter: Filter | None, ids: Sequence[str] | None) -> set[str]:
        wanted = None if ids is None else set(ids)
        return {
            key
            for key, _, metadata, _ in self._rows(collection)
            if (wanted is None or key in wanted)
            and (filter is None or matches(filter, msgspec.json.decode(metadata, type=Metadata)))
        }
