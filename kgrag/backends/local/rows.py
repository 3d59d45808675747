"""The rows of the search collections as SQLite holds them: the truth from which the search files are made.

A row's ``slot`` is a number that is never used twice and never changes its text, metadata or vector: a row that changes
in one of these moves to a new slot and its old one is noted in ``<collection>_gone``. So a search file is up to date
exactly when it has taken in every slot and every note, and taking one in twice changes nothing.
Equal metadata is stored once and has a number of its own; a filter is answered as a set of these numbers.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from kgrag.backends.local.database import Database
from kgrag.errors import ConfigurationError, StoreError
from kgrag.filters import All, Exists, Filter, Not, Range, Term, canonical, matches
from kgrag.ports import COLLECTIONS, Collection, Row, Vector
from kgrag.records import Metadata, Scalar

SCHEMA = "".join(
    f"""
CREATE TABLE {c} (slot INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, metadata INTEGER NOT NULL, digest TEXT NOT NULL,
                  body BLOB NOT NULL, tokens TEXT NOT NULL);
CREATE TABLE {c}_vectors (slot INTEGER PRIMARY KEY, vector BLOB NOT NULL);
CREATE TABLE {c}_gone (seq INTEGER PRIMARY KEY, slot INTEGER NOT NULL);
"""
    for c in COLLECTIONS
) + (
    """
CREATE TABLE metadata (number INTEGER PRIMARY KEY AUTOINCREMENT, digest BLOB NOT NULL UNIQUE);
INSERT INTO metadata VALUES (0, x'');
CREATE TABLE metadata_values (field TEXT NOT NULL, value TEXT NOT NULL, number INTEGER NOT NULL,
                              PRIMARY KEY (field, value, number)) WITHOUT ROWID;
CREATE TABLE collections (name TEXT PRIMARY KEY, next_slot INTEGER NOT NULL, next_gone INTEGER NOT NULL, pruned INTEGER NOT NULL)
                          WITHOUT ROWID;
CREATE TABLE search (one INTEGER PRIMARY KEY CHECK (one = 1), store TEXT NOT NULL, dimension INTEGER NOT NULL,
                     published INTEGER NOT NULL);
INSERT INTO search VALUES (1, lower(hex(randomblob(16))), 0, 0);
"""
    + "".join(f"INSERT INTO collections VALUES ('{c}', 1, 1, 0);\n" for c in COLLECTIONS)
)

_BATCH = 1000
_CACHED_FILTERS = 64
_UNUSED_LEAST, _UNUSED_SHARE = 1000, 0.25
"""Metadata that no row has is erased when there is so much of it (the share is of the rows)."""

_json = msgspec.json.Encoder(order="sorted").encode


class _Held(msgspec.Struct, frozen=True):
    """What an upsert compares a row with."""

    slot: int
    metadata: int
    digest: str
    tokens: str


class Rows:
    """Reads and writes of rows; every write joins the database's transaction."""

    def __init__(self, database: Database, dimension: int | None = None) -> None:
        """``dimension`` is what the first vector must have; None: any."""
        self._db = database
        self._expected = dimension or 0
        self._masks: dict[bytes, NDArray[np.bool_]] = {}

    # ------------------------------------------------------------ writing

    def upsert(self, collection: Collection, rows: Iterable[Row]) -> None:
        name = checked(collection)
        with self._db.transaction():
            remaining = iter(rows)
            while batch := {row.id: row for row in itertools.islice(remaining, _BATCH)}:
                self._upsert(name, batch)

    def _upsert(self, name: str, batch: dict[str, Row]) -> None:
        numbers = self._number(batch.values())
        vectors = self._checked_vectors([row for row in batch.values() if row.vector is not None])
        held = {
            row[0]: _Held(*row[1:])
            for row in self._db.rows_in(f"SELECT id, slot, metadata, digest, tokens FROM {name} WHERE id IN (...)", list(batch))
        }
        slot = self._db.rows("SELECT next_slot FROM collections WHERE name=?", (name,))[0][0]
        same: list[tuple[bytes, int]] = []
        moved: list[tuple[int]] = []
        fresh: list[tuple[int, str, int, str, bytes, str]] = []
        blobs: list[tuple[int, bytes]] = []
        carried: list[tuple[int, int]] = []
        for key, row in batch.items():
            old = held.get(key)
            number = numbers[key]
            if row.vector is None and row.vector_digest and (old is None or old.digest != row.vector_digest):
                raise StoreError(
                    f"No vector is held for {key} under the digest given.", subject=key, remedy="Give the row's vector with it."
                )
            if old is not None:
                known = row.vector is None or row.vector_digest != ""
                if known and (old.metadata, old.digest, old.tokens) == (number, row.vector_digest, row.tokens):
                    same.append((row.body, old.slot))
                    continue
                moved.append((old.slot,))
                if row.vector is None and row.vector_digest:
                    carried.append((slot, old.slot))
            fresh.append((slot, key, number, row.vector_digest, row.body, row.tokens))
            if key in vectors:
                blobs.append((slot, vectors[key]))
            slot += 1
        self._db.executemany(f"UPDATE {name} SET body=? WHERE slot=?", same)
        self._db.executemany(f"INSERT INTO {name}_vectors SELECT ?, vector FROM {name}_vectors WHERE slot=?", carried)
        self._drop(name, moved)
        self._db.executemany(f"INSERT INTO {name} VALUES (?,?,?,?,?,?)", fresh)
        self._db.executemany(f"INSERT INTO {name}_vectors VALUES (?,?)", blobs)
        if fresh:
            self._db.execute("UPDATE collections SET next_slot=? WHERE name=?", (slot, name))

    def delete(self, collection: Collection, ids: Iterable[str]) -> None:
        name = checked(collection)
        with self._db.transaction():
            self._drop(name, self._db.rows_in(f"SELECT slot FROM {name} WHERE id IN (...)", list(ids)))

    def _drop(self, name: str, slots: Sequence[tuple[int]]) -> None:
        if not slots:
            return
        seq = self._db.rows("SELECT next_gone FROM collections WHERE name=?", (name,))[0][0]
        self._db.executemany(f"DELETE FROM {name} WHERE slot=?", slots)
        self._db.executemany(f"DELETE FROM {name}_vectors WHERE slot=?", slots)
        self._db.executemany(f"INSERT INTO {name}_gone VALUES (?,?)", [(seq + i, slot) for i, (slot,) in enumerate(slots)])
        self._db.execute("UPDATE collections SET next_gone=? WHERE name=?", (seq + len(slots), name))

    def _checked_vectors(self, rows: Sequence[Row]) -> dict[str, bytes]:
        """The vectors as float32 bytes, all of the store's dimension and finite."""
        if not rows:
            return {}
        arrays = {row.id: np.ascontiguousarray(row.vector, np.float32) for row in rows}
        dimension = self.dimension() or self._expected or next(iter(arrays.values())).size
        for key, array in arrays.items():
            if array.shape != (dimension,):
                raise wrong_dimension(key, array.shape, dimension)
        if not np.isfinite(np.stack(list(arrays.values()))).all():
            bad = next(key for key, array in arrays.items() if not np.isfinite(array).all())
            raise StoreError(f"The vector of {bad} holds NaN or infinity.", subject=bad, remedy="Check the embedding model.")
        self._db.execute("UPDATE search SET dimension=? WHERE dimension<>?", (dimension, dimension))
        return {key: array.tobytes() for key, array in arrays.items()}

    def _number(self, rows: Iterable[Row]) -> dict[str, int]:
        """The metadata number of each row, new metadata stored."""
        digests: dict[str, bytes] = {}
        distinct: dict[bytes, Metadata] = {}
        for row in rows:
            digest = digests[row.id] = hashlib.blake2b(_json(row.metadata), digest_size=16).digest() if row.metadata else b""
            distinct[digest] = row.metadata or {}
        numbers = dict(self._db.rows_in("SELECT digest, number FROM metadata WHERE digest IN (...)", list(distinct)))
        values: set[tuple[str, str, int]] = set()
        for digest, metadata in distinct.items():
            if digest in numbers:
                continue
            number = numbers[digest] = self._db.insert("INSERT INTO metadata (digest) VALUES (?)", (digest,))
            for field, value in metadata.items():
                values.update((field, canonical(v), number) for v in (value if isinstance(value, list) else [value]))
        self._db.executemany("INSERT INTO metadata_values VALUES (?,?,?)", sorted(values))
        return {key: numbers[digest] for key, digest in digests.items()}

    def tidy(self) -> None:
        """Erase unused metadata once it is certain that much of it is."""
        live = sum(self.count(c) for c in COLLECTIONS)
        if self._db.rows("SELECT count(*) FROM metadata")[0][0] > _UNUSED_LEAST + (1 + _UNUSED_SHARE) * live:
            self.forget_unused_metadata()

    def forget_unused_metadata(self) -> None:
        """Erase metadata that no row has any more."""
        used = " UNION ".join(f"SELECT metadata FROM {c}" for c in COLLECTIONS)
        with self._db.transaction():
            for table in ("metadata_values", "metadata"):
                self._db.execute(f"DELETE FROM {table} WHERE number <> 0 AND number NOT IN ({used})")

    # ------------------------------------------------------------ reading

    def get(self, collection: Collection, ids: Sequence[str]) -> dict[str, bytes]:
        return dict(self._db.rows_in(f"SELECT id, body FROM {checked(collection)} WHERE id IN (...)", ids))

    def vectors(self, collection: Collection, ids: Sequence[str]) -> dict[str, Vector]:
        name = checked(collection)
        sql = f"SELECT id, vector FROM {name} JOIN {name}_vectors USING (slot) WHERE id IN (...)"
        return {key: np.frombuffer(blob, np.float32) for key, blob in self._db.rows_in(sql, ids)}

    def vector_digests(self, collection: Collection, ids: Sequence[str]) -> dict[str, str]:
        return dict(self._db.rows_in(f"SELECT id, digest FROM {checked(collection)} WHERE digest<>'' AND id IN (...)", ids))

    def scan(self, collection: Collection, *, after: str = "", limit: int = 1000) -> list[tuple[str, bytes]]:
        return self._db.rows(f"SELECT id, body FROM {checked(collection)} WHERE id>? ORDER BY id LIMIT ?", (after, limit))

    def count(self, collection: Collection) -> int:
        return int(self._db.rows(f"SELECT count(*) FROM {checked(collection)}")[0][0])

    def dimension(self) -> int:
        """Of the stored vectors; 0 where there is none."""
        held = " OR ".join(f"EXISTS (SELECT 1 FROM {c}_vectors)" for c in COLLECTIONS)
        found = self._db.rows(f"SELECT dimension FROM search WHERE {held}")
        return int(found[0][0]) if found else 0

    def _slots_of(self, collection: str, ids: Sequence[str]) -> list[int]:
        return [slot for (slot,) in self._db.rows_in(f"SELECT slot FROM {checked(collection)} WHERE id IN (...)", ids)]

    def _ids_of(self, collection: str, slots: Sequence[int]) -> dict[int, str]:
        return dict(self._db.rows_in(f"SELECT slot, id FROM {checked(collection)} WHERE slot IN (...)", slots))

    # ------------------------------------------------------------ filters

    def passing(self, collection: Collection, ids: Sequence[str], filter: Filter) -> set[str]:
        mask = self.mask(filter)
        found = self._db.rows_in(f"SELECT id, metadata FROM {checked(collection)} WHERE id IN (...)", ids)
        return {key for key, number in found if mask[number]}

    def mask(self, filter: Filter) -> NDArray[np.bool_]:
        """Whether the metadata of each number passes; indexed by number."""
        size = int(self._db.rows("SELECT max(number) FROM metadata")[0][0]) + 1
        key = msgspec.json.encode(filter)
        held = self._masks.get(key)
        if held is not None and len(held) >= size:
            return held
        mask = self._evaluate(filter, size)
        if len(self._masks) >= _CACHED_FILTERS:
            self._masks.clear()
        self._masks[key] = mask
        return mask

    def _evaluate(self, filter: Filter, size: int) -> NDArray[np.bool_]:
        match filter:
            case All(clauses):
                mask = np.ones(size, np.bool_)
                for clause in clauses:
                    mask &= self._evaluate(clause, size)
                return mask
            case Not(inner):
                return ~self._evaluate(inner, size)
            case Exists(field):
                found = self._db.rows("SELECT number FROM metadata_values WHERE field=?", (field,))
            case Term(field, wanted):
                values = [canonical(value) for value in wanted]
                found = self._db.rows_in("SELECT number FROM metadata_values WHERE field=? AND value IN (...)", values, field)
            case Range(field):
                verdicts: dict[str, bool] = {}
                found = []
                for value, number in self._db.rows("SELECT value, number FROM metadata_values WHERE field=?", (field,)):
                    if value not in verdicts:
                        verdicts[value] = matches(filter, {field: _scalar(value)})
                    if verdicts[value]:
                        found.append((number,))
        mask = np.zeros(size, np.bool_)
        numbers = np.fromiter((number for (number,) in found), np.int64, len(found))
        mask[numbers[numbers < size]] = True  # what was committed since ``size`` was read is not asked about
        return mask


def checked(collection: str) -> str:
    """The collection's name, safe to stand in SQL."""
    if collection not in COLLECTIONS:
        raise ConfigurationError(
            f'There is no collection "{collection}".', subject=collection, remedy=f"Collections are {', '.join(COLLECTIONS)}."
        )
    return collection


def wrong_dimension(subject: str, shape: tuple[int, ...], dimension: int) -> ConfigurationError:
    return ConfigurationError(
        f"The vector of {subject} has shape {shape}; this index holds vectors of {dimension} dimensions.",
        subject=subject,
        remedy="Use the embedding model the index was built with, or build the index anew with the other one.",
    )


def _scalar(value: str) -> Scalar:
    """The value behind ``kgrag.filters.canonical``."""
    kind, text = value[0], value[2:]
    if kind == "s":
        return text
    if kind == "b":
        return text == "1"
    try:
        return int(text)
    except ValueError:
        return float(text)
