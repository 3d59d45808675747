"""One SQLite file in WAL mode: any number of readers in any number of processes, one writing transaction at a time.

``synchronous=NORMAL``: a killed process loses nothing that was committed. A power cut can lose what was committed since
the last checkpoint (``refresh`` makes one), the latest commits first, and never the file's consistency; the next run
then does that part again.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from kgrag.backends.local import failures
from kgrag.backends.local.connections import Frozen, make, open_reader, open_writer
from kgrag.backends.local.filesystem import require_local
from kgrag.errors import LeaseLostError, StoreCorruptError, StoreError, StoreUnavailableError, StoreVersionError

Mode = Literal["read", "write"]

APPLICATION_ID = 0x6B677267
"""Marks a SQLite file as ours (``PRAGMA application_id``)."""

_CHUNK = 512

_inherited: list[sqlite3.Connection] = []
"""A forked child's copies of its parent's connections: SQLite allows neither using nor closing them there."""


class Database:
    """``rows`` reads, ``transaction`` with ``execute`` and ``executemany`` writes.

    Safe for threads and forks: reads take a connection of their own from a pool, writes share one behind a lock, and a
    forked child opens everything anew. Inside a transaction its own thread reads what it has written."""

    def __init__(self, path: Path, *, schema: str, version: int, mode: Mode, create: bool = False) -> None:
        self.path = path
        self.mode: Mode = mode
        self.epoch: int | None = None
        """The lease epoch that every transaction must find (None: it is not asked for)."""
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._idle: list[sqlite3.Connection] = []
        self._frozen: Frozen | None = None
        self._writer: sqlite3.Connection | None = None
        self._owner = 0
        self._depth = 0
        self._closed = False
        require_local(path.parent)
        try:
            if not path.exists():
                if not create or mode == "read":
                    raise StoreUnavailableError(
                        f"There is no store at {path}.", subject=str(path), remedy="Ingest documents first, or check KGRAG_HOME."
                    )
                make(path, f"{schema}; PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={version}")
            if mode == "write":
                connection = self._writer = open_writer(path)
            else:
                connection = self._borrow()
                self._idle.append(connection)
            _check_format(connection, path, version)
        except BaseException as error:
            self.close()
            if isinstance(error, sqlite3.Error):
                raise failures.of_sqlite(error, path) from error
            raise

    # ------------------------------------------------------------ reading

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """All rows of one statement, as tuples."""
        if self.in_transaction:
            assert self._writer is not None
            try:
                return self._writer.execute(sql, parameters).fetchall()
            except sqlite3.Error as error:
                raise failures.of_sqlite(error, self.path) from error
        connection = self._borrow()
        try:
            return connection.execute(sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise failures.of_sqlite(error, self.path) from error
        finally:
            self._idle.append(connection)

    def rows_in(self, sql: str, values: Sequence[Any], *before: Any) -> list[Any]:
        """Rows of a statement that holds ``IN (...)`` for any number of values; ``before`` are parameters ahead of it."""
        if len(values) <= _CHUNK:
            if not values:
                return []
            marks, padded = _marks(values)
            return self.rows(sql.replace("(...)", marks), (*before, *padded))
        distinct = list(dict.fromkeys(values))
        found: list[Any] = []
        for start in range(0, len(distinct), _CHUNK):
            found += self.rows_in(sql, distinct[start : start + _CHUNK], *before)
        return found

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[Callable[..., list[Any]]]:
        """A function like ``rows`` whose calls all see one committed state."""
        connection = self._borrow()

        def read(sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
            return connection.execute(sql, parameters).fetchall()

        try:
            connection.execute("BEGIN")
            yield read
        except sqlite3.Error as error:
            raise failures.of_sqlite(error, self.path) from error
        finally:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            self._idle.append(connection)

    # ------------------------------------------------------------ writing

    @property
    def in_transaction(self) -> bool:
        """Whether the calling thread has a transaction open."""
        return self._owner == threading.get_ident() and os.getpid() == self._pid

    @contextlib.contextmanager
    def transaction(self, *, fenced: bool = True) -> Iterator[None]:
        """One atomic step. Nested uses join it; a nested one that fails leaves nothing of its own."""
        self._require_writable()
        with self._lock:
            connection = self._open_for_writing()
            outermost = self._depth == 0
            name = f"step{self._depth}"
            try:
                connection.execute("BEGIN IMMEDIATE" if outermost else f"SAVEPOINT {name}")
            except sqlite3.Error as error:
                raise failures.of_sqlite(error, self.path) from error
            self._depth += 1
            self._owner = threading.get_ident()
            try:
                if outermost and fenced:
                    self.check_fence()
                yield
                connection.execute("COMMIT" if outermost else f"RELEASE {name}")
            except BaseException as error:
                # SQLite rolls back by itself on a full disk, among others; then there is nothing left to undo.
                if connection.in_transaction:
                    with contextlib.suppress(sqlite3.Error):
                        for undo in ("ROLLBACK",) if outermost else (f"ROLLBACK TO {name}", f"RELEASE {name}"):
                            connection.execute(undo)
                if isinstance(error, sqlite3.Error):
                    raise failures.of_sqlite(error, self.path) from error
                raise
            finally:
                self._depth -= 1
                if outermost:
                    self._owner = 0

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Run one writing statement inside a transaction; returns the number of rows it changed."""
        try:
            return self._transacting().execute(sql, parameters).rowcount
        except sqlite3.Error as error:
            raise failures.of_sqlite(error, self.path) from error

    def insert(self, sql: str, parameters: Sequence[Any]) -> int:
        """Run one INSERT inside a transaction; returns the number of the new row."""
        try:
            return int(self._transacting().execute(sql, parameters).lastrowid or 0)
        except sqlite3.Error as error:
            raise failures.of_sqlite(error, self.path) from error

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]]) -> None:
        try:
            self._transacting().executemany(sql, parameters)
        except sqlite3.Error as error:
            raise failures.of_sqlite(error, self.path) from error

    def execute_in(self, sql: str, values: Sequence[Any]) -> None:
        """A writing statement that holds ``IN (...)`` for any number of values."""
        for start in range(0, len(values), _CHUNK):
            marks, part = _marks(values[start : start + _CHUNK])
            self.execute(sql.replace("(...)", marks), part)

    def check_fence(self) -> None:
        """Raises LeaseLostError where the lease's epoch is no longer the one fenced for."""
        if self.epoch is None:
            return
        owner, epoch = self.rows("SELECT owner, epoch FROM lease")[0]
        if epoch != self.epoch:
            raise LeaseLostError(
                f"The lease passed to {owner or 'another run'}; nothing was written.",
                subject=owner,
                remedy="Start this run again when the other has ended.",
            )

    def checkpoint(self) -> None:
        """Make everything committed durable and bring it from the log into the file, as far as readers allow."""
        self._maintain("PRAGMA wal_checkpoint(PASSIVE)")

    def vacuum(self) -> None:
        """Write the file anew without the content of deleted rows, and empty the log."""
        self._maintain("PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if os.getpid() != self._pid:
            self._leave_parent()
        for connection in self._idle:
            connection.close()
        self._idle.clear()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    # ------------------------------------------------------------ connections

    def _borrow(self) -> sqlite3.Connection:
        if os.getpid() != self._pid:
            self._leave_parent()
        if self._closed:
            raise self._closed_error()
        if self._frozen is not None and self._frozen.changed():
            self._thaw()
        try:
            return self._idle.pop()
        except IndexError:
            pass
        try:
            connection, frozen = open_reader(self.path)
        except sqlite3.Error as error:
            raise failures.of_sqlite(error, self.path) from error
        self._frozen = frozen
        return connection

    def _thaw(self) -> None:
        """Somebody writes to what was read as it was: open it anew."""
        with self._lock:
            idle, self._idle = self._idle, []
            self._frozen = None
        for connection in idle:
            connection.close()

    def _transacting(self) -> sqlite3.Connection:
        if not self.in_transaction or self._writer is None:
            raise StoreError(f"A write to {self.path} outside a transaction.", subject=str(self.path), remedy="Use transaction().")
        return self._writer

    def _require_writable(self) -> None:
        if self.mode == "read":
            raise failures.read_only(str(self.path))
        if os.getpid() != self._pid:
            self._leave_parent()

    def _open_for_writing(self) -> sqlite3.Connection:
        if self._closed:
            raise self._closed_error()
        if self._writer is None:
            try:
                self._writer = open_writer(self.path)
            except sqlite3.Error as error:
                raise failures.of_sqlite(error, self.path) from error
        return self._writer

    def _maintain(self, *statements: str) -> None:
        self._require_writable()
        with self._lock:
            if self._depth:
                raise StoreError(f"{statements[0]} inside a transaction.", subject=str(self.path), remedy="Call it afterwards.")
            connection = self._open_for_writing()
            try:
                for statement in statements:
                    connection.execute(statement).fetchall()
            except sqlite3.Error as error:
                raise failures.of_sqlite(error, self.path) from error

    def _leave_parent(self) -> None:
        _inherited.extend(self._idle)
        if self._writer is not None:
            _inherited.append(self._writer)
        self._idle = []
        self._writer = None
        self._lock = threading.RLock()
        self._owner = self._depth = 0
        self._pid = os.getpid()

    def _closed_error(self) -> StoreUnavailableError:
        return StoreUnavailableError(f"The store {self.path} is closed.", subject=str(self.path), remedy="Open it again.")


def _check_format(connection: sqlite3.Connection, path: Path, version: int) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION_ID:
        raise StoreCorruptError(
            f"{path} is not a kgrag store.", subject=str(path), remedy="Move the file away, or check KGRAG_HOME."
        )
    if found > version:
        raise StoreVersionError(
            f"{path} has format {found}; this kgrag reads up to {version}.",
            subject=str(path),
            remedy="Upgrade kgrag, or index into another namespace.",
        )


def _marks(values: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    """Marks for the values, and the values filled up with the last one to a power of two: SQLite then prepares few
    different statements."""
    size = 1 << (len(values) - 1).bit_length()
    return "(" + ",".join("?" * size) + ")", [*values, *[values[-1]] * (size - len(values))]
