"""StatusStore in SQLite: documents, source files, small values and the lease."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from kgrag.backends.local.database import Database
from kgrag.errors import LeaseHeldError, LeaseLostError
from kgrag.ports import Lease
from kgrag.records import DocumentStatus, decode, encode

SCHEMA = """
CREATE TABLE documents (id TEXT PRIMARY KEY, scope TEXT NOT NULL, path TEXT NOT NULL, state TEXT NOT NULL, body BLOB NOT NULL);
CREATE INDEX documents_scope ON documents (scope, id);
CREATE INDEX documents_path ON documents (scope, path, id);
CREATE TABLE files (scope TEXT NOT NULL, path TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (scope, path)) WITHOUT ROWID;
CREATE TABLE vals (key TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE lease (one INTEGER PRIMARY KEY CHECK (one = 1), owner TEXT NOT NULL, epoch INTEGER NOT NULL, expires_at REAL NOT NULL);
INSERT INTO lease VALUES (1, '', 0, 0);
"""


class LocalStatus:
    """The lease's epoch grows with every take-over and never falls, so a late writer is always found out."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def get(self, ids: Sequence[str]) -> dict[str, DocumentStatus]:
        found = self._db.rows_in("SELECT id, body FROM documents WHERE id IN (...)", ids)
        return {key: decode(body, DocumentStatus) for key, body in found}

    def put(self, documents: Iterable[DocumentStatus]) -> None:
        rows = [(d.id, d.scope, d.path, d.state, encode(d)) for d in documents]
        with self._db.transaction():
            self._db.executemany(
                "INSERT INTO documents VALUES (?,?,?,?,?) ON CONFLICT (id) DO UPDATE SET"
                " scope=excluded.scope, path=excluded.path, state=excluded.state, body=excluded.body",
                rows,
            )

    def delete(self, ids: Iterable[str]) -> None:
        with self._db.transaction():
            self._db.execute_in("DELETE FROM documents WHERE id IN (...)", list(ids))

    def of_scope(self, scope: str, *, after: str = "", limit: int = 1000) -> list[DocumentStatus]:
        return self._documents(
            "SELECT body FROM documents INDEXED BY documents_scope WHERE scope=? AND id>? ORDER BY id LIMIT ?", scope, after, limit
        )

    def scan(self, *, after: str = "", limit: int = 1000) -> list[DocumentStatus]:
        return self._documents("SELECT body FROM documents WHERE id>? ORDER BY id LIMIT ?", after, limit)

    def of_file(self, scope: str, path: str) -> list[DocumentStatus]:
        return self._documents("SELECT body FROM documents WHERE scope=? AND path=? ORDER BY id", scope, path)

    def count(self) -> dict[str, int]:
        return dict(self._db.rows("SELECT state, count(*) FROM documents GROUP BY state ORDER BY state"))

    def scopes(self) -> list[str]:
        found = self._db.rows("SELECT DISTINCT scope FROM documents UNION SELECT DISTINCT scope FROM files ORDER BY scope")
        return [scope for (scope,) in found]

    def files(self, scope: str) -> dict[str, str]:
        return dict(self._db.rows("SELECT path, digest FROM files WHERE scope=? ORDER BY path", (scope,)))

    def put_files(self, scope: str, digests: Mapping[str, str], gone: Iterable[str] = ()) -> None:
        with self._db.transaction():
            self._db.executemany("DELETE FROM files WHERE scope=? AND path=?", [(scope, path) for path in gone])
            self._db.executemany(
                "INSERT OR REPLACE INTO files VALUES (?,?,?)", [(scope, path, digest) for path, digest in digests.items()]
            )

    def read_value(self, key: str) -> Any:
        found = self._db.rows("SELECT body FROM vals WHERE key=?", (key,))
        return msgspec.json.decode(found[0][0]) if found else None

    def write_value(self, key: str, value: Any) -> None:
        with self._db.transaction():
            self._db.execute("INSERT OR REPLACE INTO vals VALUES (?,?)", (key, msgspec.json.encode(value)))

    # ------------------------------------------------------------ lease

    def acquire_lease(self, owner: str, seconds: float) -> Lease:
        with self._db.transaction(fenced=False):
            held = self.current_lease()
            now = time.time()
            if held is not None and held.owner != owner and held.expires_at > now:
                raise LeaseHeldError(
                    f"{held.owner} is writing to this namespace (its lease ends in {held.expires_at - now:.0f} s).",
                    subject=held.owner,
                    remedy="Wait for that run to end; if it was killed, its lease runs out by itself.",
                )
            epoch = self._db.rows("SELECT epoch FROM lease")[0][0] + 1
            self._db.execute("UPDATE lease SET owner=?, epoch=?, expires_at=?", (owner, epoch, now + seconds))
        return Lease(owner=owner, epoch=epoch, expires_at=now + seconds)

    def renew_lease(self, lease: Lease, seconds: float) -> Lease:
        with self._db.transaction(fenced=False):
            expires = time.time() + seconds
            if not self._db.execute("UPDATE lease SET expires_at=? WHERE owner=? AND epoch=?", (expires, lease.owner, lease.epoch)):
                raise LeaseLostError(
                    f"{lease.owner} no longer owns this namespace.",
                    subject=lease.owner,
                    remedy="Another run took over; start this one again when that has ended.",
                )
        return Lease(owner=lease.owner, epoch=lease.epoch, expires_at=expires)

    def release_lease(self, lease: Lease) -> None:
        """Gives the lease up; does nothing where another run has taken it."""
        with self._db.transaction(fenced=False):
            self._db.execute("UPDATE lease SET owner='', expires_at=0 WHERE owner=? AND epoch=?", (lease.owner, lease.epoch))

    def current_lease(self) -> Lease | None:
        """The lease as it stands, run out or not; None where nobody holds one."""
        owner, epoch, expires = self._db.rows("SELECT owner, epoch, expires_at FROM lease")[0]
        return Lease(owner=owner, epoch=epoch, expires_at=expires) if owner else None

    def _documents(self, sql: str, *parameters: object) -> list[DocumentStatus]:
        return [decode(body, DocumentStatus) for (body,) in self._db.rows(sql, parameters)]
