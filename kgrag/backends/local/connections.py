"""How a SQLite file is opened: for writing, for reading beside a writer, and where nothing can be written."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from pathlib import Path

from kgrag.backends.local import failures
from kgrag.errors import StoreUnavailableError

PAGE_SIZE = 8192
"""Bytes; holds several vectors of common dimensions."""

CACHE_KIB = 8 * 1024
READ_MMAP = 1 << 30
WAIT_SECONDS = 30.0
"""How long a transaction waits for another process's."""

CHECKPOINT_PAGES = 4000
"""Pages of log (32 MB) before it is copied into the file: often rewritten pages are copied once."""

# A read of the schema makes a file that cannot be used fail here.
_TUNING = (f"PRAGMA cache_size=-{CACHE_KIB}", "PRAGMA temp_store=MEMORY", "SELECT 1 FROM sqlite_master LIMIT 1")


def make(path: Path, schema: str) -> None:
    """Make the file with these statements in it, whole or not at all, once however many processes try.
    Raises StoreReadOnlyError, StoreUnavailableError, sqlite3.Error."""
    if not os.access(path.parent, os.W_OK):
        raise failures.not_writable(str(path))
    fresh = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.new")
    connection = _connect(fresh, "", f"PRAGMA page_size={PAGE_SIZE}")
    try:
        if connection.execute("PRAGMA journal_mode=WAL").fetchone()[0] != "wal":
            raise StoreUnavailableError(
                f"{path} cannot be shared between processes here.",
                subject=str(path),
                remedy="Set KGRAG_HOME to a folder on a local disk.",
            )
        connection.executescript(f"BEGIN; {schema}; COMMIT")
        connection.close()
        with contextlib.suppress(FileExistsError):
            os.link(fresh, path)
    finally:
        connection.close()
        for left in path.parent.glob(f"{fresh.name}*"):
            left.unlink()


def open_writer(path: Path) -> sqlite3.Connection:
    """Raises StoreReadOnlyError, sqlite3.Error."""
    if not os.access(path.parent, os.W_OK) or not os.access(path, os.W_OK):
        raise failures.not_writable(str(path))
    return _connect(
        path,
        "?mode=rw",
        *_TUNING,
        "PRAGMA synchronous=NORMAL",
        "PRAGMA secure_delete=OFF",  # ``compact`` is what erases
        f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}",
        f"PRAGMA journal_size_limit={CHECKPOINT_PAGES * PAGE_SIZE}",
    )


def open_reader(path: Path) -> tuple[sqlite3.Connection, Frozen | None]:
    """A connection that cannot write, and what it saw if the files must not change under it.

    SQLite reads a log with the help of a shared file beside it. Where that can neither be opened nor made (a read-only
    mount or folder), nobody here writes either: the files are read as they are, without locks."""
    tuned = (*_TUNING, f"PRAGMA mmap_size={READ_MMAP}")
    try:
        return _connect(path, "?mode=ro", *tuned), None
    except sqlite3.OperationalError:
        if os.access(path.parent, os.W_OK):
            raise
    frozen = Frozen(path)
    if not frozen.has_log:
        return _connect(path, "?mode=ro&immutable=1", *tuned), frozen
    # In exclusive mode the index of the log is kept in memory; this VFS takes no locks, which a file opened for reading
    # could not give.
    return _connect(path, "?mode=ro&vfs=unix-none", "PRAGMA locking_mode=EXCLUSIVE", *_TUNING), frozen


class Frozen:
    """The state of a file and its log that were opened without locks."""

    def __init__(self, path: Path) -> None:
        self._paths = (path, path.with_name(path.name + "-wal"))
        self._stamp = self._look()
        self.has_log = self._stamp[1][0] > 0

    def changed(self) -> bool:
        """Whether somebody has written since: then what is open must be opened anew."""
        return self._look() != self._stamp

    def _look(self) -> list[tuple[int, int, int]]:
        found = []
        for path in self._paths:
            try:
                status = path.stat()
                found.append((status.st_size, status.st_mtime_ns, status.st_ino))
            except FileNotFoundError:
                found.append((0, 0, 0))
        return found


def _connect(path: Path, options: str, *statements: str) -> sqlite3.Connection:
    quoted = str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    connection = sqlite3.connect(
        f"file:{quoted}{options}", uri=True, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        for statement in statements:
            connection.execute(statement).fetchall()
    except BaseException:
        connection.close()
        raise
    return connection
