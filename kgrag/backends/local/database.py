"""One SQLite file: opened, versioned, locked, and its errors given their names and remedies.

WAL mode: any number of readers in any number of processes beside one writing transaction at a time.
``synchronous=NORMAL``: a killed process loses nothing that was committed; a power cut can lose what was committed
since the last checkpoint (``refresh`` makes one), never the file's consistency.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from kgrag.backends.local.filesystem import require_local
from kgrag.errors import (
    LeaseLostError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
    StoreVersionError,
)

Mode = Literal["read", "write"]

APPLICATION_ID = 0x6B677267
"""Marks a SQLite file as ours (``PRAGMA application_id``)."""

_PAGE_SIZE = 8192
_CACHE_KIB = 8 * 1024
_READ_MMAP = 1 << 30
_WAIT_SECONDS = 30.0
_CHECKPOINT_PAGES = 4000
_CHUNK = 500

_abandoned: list[sqlite3.Connection] = []
"""Connections a forked child inherited: using or closing one would drop or corrupt the parent's locks."""


class Database:
    """``rows`` reads, ``transaction`` with ``execute`` and ``executemany`` writes.

    Safe for threads and forks: reads take a connection of their own from a pool, writes share one behind a lock, and a
    forked child opens everything anew. Inside a transaction its own thread reads what it has written."""

    def __init__(self, path: Path, *, schema: str, version: int, mode: Mode, create: bool = False) -> None:
        self.path = path
        self.mode: Mode = mode
        self._schema = schema
        self._version = version
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._idle: list[sqlite3.Connection] = []
        self._writer: sqlite3.Connection | None = None
        self._owner = 0
        self._depth = 0
        self._closed = False
        self.epoch: int | None = None
        """Fence: the lease epoch every write transaction must find (None: no fence)."""
        require_local(path.parent)
        exists = path.exists()
        if not exists and not (create and mode == "write"):
            raise StoreUnavailableError(
                f"There is no store at {path}.", subject=str(path), remedy="Ingest documents first, or check KGRAG_HOME."
            )
        try:
            connection = self._open_writer() if mode == "write" else self._open_reader()
            self._check_format(connection)
        except sqlite3.Error as error:
            raise explained(error, path) from error
        if mode == "write":
            self._writer = connection
        else:
            self._idle.append(connection)

    # ------------------------------------------------------------ reading

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """All rows of one statement, as tuples."""
        if self._owner == threading.get_ident() and self._writer is not None and os.getpid() == self._pid:
            try:
                return self._writer.execute(sql, parameters).fetchall()
            except sqlite3.Error as error:
                raise explained(error, self.path) from error
        connection = self._borrow()
        try:
            return connection.execute(sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise explained(error, self.path) from error
        finally:
            self._idle.append(connection)

    def rows_in(self, sql: str, values: Sequence[Any], *before: Any) -> list[Any]:
        """Rows of a statement that holds ``IN (?)`` for any number of values; ``before`` are parameters ahead of it."""
        found: list[Any] = []
        distinct = list(dict.fromkeys(values))
        for start in range(0, len(distinct), _CHUNK):
            part = distinct[start : start + _CHUNK]
            found += self.rows(sql.replace("(?)", _marks(len(part)), 1), (*before, *part))
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
            raise explained(error, self.path) from error
        finally:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            self._idle.append(connection)

    # ------------------------------------------------------------ writing

    @property
    def in_transaction(self) -> bool:
        """Whether the calling thread has a transaction open."""
        return self._owner == threading.get_ident()

    @contextlib.contextmanager
    def transaction(self, *, fenced: bool = True) -> Iterator[None]:
        """One atomic step. Nested uses join it; a nested one that fails leaves nothing of its own."""
        self._require_writable()
        with self._lock:
            self._require_writable()
            connection = self._writer
            assert connection is not None
            name = f"s{self._depth}"
            try:
                if self._depth:
                    connection.execute(f"SAVEPOINT {name}")
                else:
                    connection.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                raise explained(error, self.path) from error
            outermost = not self._depth
            self._depth += 1
            self._owner = threading.get_ident()
            try:
                if outermost and fenced:
                    self.check_fence()
                yield
                connection.execute("COMMIT" if outermost else f"RELEASE {name}")
            except BaseException as error:
                # A full disk makes SQLite roll back by itself.
                with contextlib.suppress(sqlite3.Error):
                    if outermost:
                        if connection.in_transaction:
                            connection.execute("ROLLBACK")
                    else:
                        connection.execute(f"ROLLBACK TO {name}")
                        connection.execute(f"RELEASE {name}")
                if isinstance(error, sqlite3.Error):
                    raise explained(error, self.path) from error
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
            raise explained(error, self.path) from error

    def insert(self, sql: str, parameters: Sequence[Any]) -> int:
        """Run one INSERT inside a transaction; returns the number of the new row."""
        try:
            return int(self._transacting().execute(sql, parameters).lastrowid or 0)
        except sqlite3.Error as error:
            raise explained(error, self.path) from error

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]]) -> None:
        try:
            self._transacting().executemany(sql, parameters)
        except sqlite3.Error as error:
            raise explained(error, self.path) from error

    def execute_in(self, sql: str, values: Sequence[Any]) -> None:
        """A writing statement that holds ``IN (?)`` for any number of values."""
        for start in range(0, len(values), _CHUNK):
            part = values[start : start + _CHUNK]
            self.execute(sql.replace("(?)", _marks(len(part)), 1), part)

    def check_fence(self) -> None:
        """Raises LeaseLostError where the lease's epoch is no longer the one fenced for."""
        if self.epoch is None:
            return
        found = self.rows("SELECT owner, epoch FROM lease")[0]
        if found[1] != self.epoch:
            raise LeaseLostError(
                f"The lease passed to {found[0] or 'another run'}; nothing was written.",
                subject=found[0],
                remedy="Start this run again when the other has ended.",
            )

    def checkpoint(self) -> None:
        """Make everything committed durable and bring it from the log into the file, as far as readers allow."""
        self._require_writable()
        with self._lock:
            if self._depth or self._writer is None:
                return
            try:
                self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            except sqlite3.Error as error:
                raise explained(error, self.path) from error

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        connections = [*self._idle, *([self._writer] if self._writer else [])]
        self._idle.clear()
        self._writer = None
        if os.getpid() != self._pid:
            _abandoned.extend(connections)
            return
        for connection in connections:
            connection.close()

    # ------------------------------------------------------------ connections

    def _borrow(self) -> sqlite3.Connection:
        if os.getpid() != self._pid:
            self._leave_parent()
        if self._closed:
            raise StoreUnavailableError(f"The store {self.path} is closed.", subject=str(self.path), remedy="Open it again.")
        try:
            return self._idle.pop()
        except IndexError:
            pass
        try:
            return self._open_reader()
        except sqlite3.Error as error:
            raise explained(error, self.path) from error

    def _transacting(self) -> sqlite3.Connection:
        if self._owner != threading.get_ident() or self._writer is None:
            raise StoreError(f"A write to {self.path} outside a transaction.", subject=str(self.path), remedy="Use transaction().")
        return self._writer

    def _require_writable(self) -> None:
        if self.mode == "read":
            raise read_only(str(self.path))
        if os.getpid() != self._pid:
            self._leave_parent()
        if self._closed:
            raise StoreUnavailableError(f"The store {self.path} is closed.", subject=str(self.path), remedy="Open it again.")
        if self._writer is None:
            with self._lock:
                if self._writer is None:
                    try:
                        self._writer = self._open_writer()
                    except sqlite3.Error as error:
                        raise explained(error, self.path) from error

    def _leave_parent(self) -> None:
        _abandoned.extend(self._idle)
        if self._writer is not None:
            _abandoned.append(self._writer)
        self._idle = []
        self._writer = None
        self._lock = threading.RLock()
        self._owner = self._depth = 0
        self._pid = os.getpid()

    def _open_writer(self) -> sqlite3.Connection:
        if (self.path.exists() and not os.access(self.path, os.W_OK)) or not os.access(self.path.parent, os.W_OK):
            raise StoreReadOnlyError(
                f"{self.path} cannot be written to.",
                subject=str(self.path),
                remedy="Give this user write permission, or set KGRAG_HOME to a folder that is writable.",
            )
        connection = self._connect(f"file:{_quoted(self.path)}")
        connection.execute(f"PRAGMA page_size={_PAGE_SIZE}")
        if connection.execute("PRAGMA journal_mode=WAL").fetchone()[0] != "wal":
            raise StoreUnavailableError(
                f"{self.path} cannot be shared between processes here.",
                subject=str(self.path),
                remedy="Set KGRAG_HOME to a folder on a local disk.",
            )
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA secure_delete=OFF")
        connection.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit={_CHECKPOINT_PAGES * _PAGE_SIZE}")
        return connection

    def _open_reader(self) -> sqlite3.Connection:
        connection = self._connect(f"file:{_quoted(self.path)}?mode=ro")
        connection.execute(f"PRAGMA mmap_size={_READ_MMAP}")
        return connection

    def _connect(self, uri: str) -> sqlite3.Connection:
        connection = sqlite3.connect(uri, uri=True, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
        connection.execute("PRAGMA temp_store=MEMORY")
        return connection

    def _check_format(self, connection: sqlite3.Connection) -> None:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if application == version == tables == 0 and self.mode == "write":
            connection.executescript(
                f"BEGIN IMMEDIATE; {self._schema}"
                f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={self._version}; COMMIT;"
            )
            return
        if application != APPLICATION_ID:
            raise StoreCorruptError(
                f"{self.path} is not a kgrag store.", subject=str(self.path), remedy="Move the file away, or check KGRAG_HOME."
            )
        if version > self._version:
            raise StoreVersionError(
                f"{self.path} has format {version}; this kgrag reads up to {self._version}.",
                subject=str(self.path),
                remedy="Upgrade kgrag, or index into another namespace.",
            )


def explained(error: sqlite3.Error, path: Path) -> StoreError:
    """The error of ours that says what this SQLite error means and what to do."""
    code = getattr(error, "sqlite_errorcode", 0) or 0
    primary = code & 0xFF
    subject = str(path)
    if primary == sqlite3.SQLITE_FULL or "disk is full" in str(error):
        return StoreFullError(
            f"No space is left for {path}; the last step was undone.", subject=subject, remedy="Free disk space and run again."
        )
    if primary == sqlite3.SQLITE_READONLY:
        return StoreReadOnlyError(f"{path} cannot be written to.", subject=subject, remedy="Make the file and its folder writable.")
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreCorruptError(
            f"{path} is damaged ({error}).",
            subject=subject,
            remedy="Restore it from a backup, or delete the namespace's folder and ingest again (paid answers stand in answers.db).",
        )
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreUnavailableError(
            f"{path} is being written by another process ({_WAIT_SECONDS:.0f} s waited).",
            subject=subject,
            remedy="Wait for the other run to end, then try again.",
        )
    if primary in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StoreUnavailableError(
            f"{path} cannot be opened ({error}).", subject=subject, remedy="Check that the folder exists and its permissions."
        )
    return StoreError(f"{path}: {error}", subject=subject, remedy="See the message of SQLite above.")


def read_only(thing: str) -> StoreReadOnlyError:
    return StoreReadOnlyError(f"{thing} was opened for reading.", subject=thing, remedy='Open the stores with mode="write".')


def _marks(count: int) -> str:
    return "(" + ",".join("?" * count) + ")"


def _quoted(path: Path) -> str:
    return str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
