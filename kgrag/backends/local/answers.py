"""AnswerStore in a SQLite file of its own, so that an index can be thrown away and what was paid for stays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from kgrag.backends.local.database import Database
from kgrag.backends.local.failures import read_only

SCHEMA = "CREATE TABLE answers (key TEXT PRIMARY KEY, body BLOB NOT NULL);"
FORMAT = 1


class LocalAnswers:
    """``database`` is None for a reader of a namespace that never stored an answer; ``fence`` is asked before a write."""

    def __init__(self, database: Database | None, fence: Callable[[], None]) -> None:
        self._db = database
        self._fence = fence

    def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        if self._db is None:
            return {}
        return dict(self._db.rows_in("SELECT key, body FROM answers WHERE key IN (...)", keys))

    def put_many(self, answers: Mapping[str, bytes]) -> None:
        db = self._writable()
        with db.transaction():
            db.executemany("INSERT OR REPLACE INTO answers VALUES (?,?)", list(answers.items()))

    def delete_many(self, keys: Iterable[str]) -> None:
        db = self._writable()
        with db.transaction():
            db.execute_in("DELETE FROM answers WHERE key IN (...)", list(keys))

    def keys(self, *, after: str = "", limit: int = 1000) -> list[str]:
        if self._db is None:
            return []
        return [key for (key,) in self._db.rows("SELECT key FROM answers WHERE key>? ORDER BY key LIMIT ?", (after, limit))]

    def _writable(self) -> Database:
        self._fence()
        if self._db is None:
            raise read_only("The answers")
        return self._db
