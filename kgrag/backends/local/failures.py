"""What SQLite and the system report, as errors that say what to do."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from kgrag.errors import (
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)

_LITTLE_SPACE = 1 << 20
"""Bytes."""


def of_sqlite(error: sqlite3.Error, path: Path) -> StoreError:
    """The error of ours that this SQLite error means."""
    primary = (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF
    subject = str(path)
    if primary == sqlite3.SQLITE_FULL or (primary == sqlite3.SQLITE_IOERR and no_space(path.parent)):
        return full(subject)
    if primary == sqlite3.SQLITE_READONLY:
        return not_writable(subject)
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreCorruptError(
            f"{path} is damaged ({error}).",
            subject=subject,
            remedy="Restore it from a backup, or delete index.db and ingest again: what was paid for stands in answers.db.",
        )
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreUnavailableError(
            f"{path} has been held by another process for too long.",
            subject=subject,
            remedy="Wait for the other run to end, then try again.",
        )
    if primary in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StoreUnavailableError(
            f"{path} cannot be opened ({error}).", subject=subject, remedy="Check that its folder exists and may be read."
        )
    if primary == sqlite3.SQLITE_IOERR:
        return StoreUnavailableError(
            f"{path}: the disk failed ({error}).",
            subject=subject,
            remedy="Check the disk, its space and its limits; then run again.",
        )
    return StoreError(f"{path}: {error}.", subject=subject, remedy="Please report this with the message.")


def no_space(folder: Path) -> bool:
    """Whether a failed write probably met a full disk, or a quota or limit that the system does not report as a full disk."""
    if resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY:
        return True
    try:
        free = os.statvfs(folder)
    except OSError:
        return False
    return free.f_bavail * free.f_frsize < _LITTLE_SPACE


@contextlib.contextmanager
def of_files(folder: Path) -> Iterator[None]:
    """Raises the error of ours that an OSError inside means."""
    try:
        yield
    except OSError as error:
        subject = str(error.filename or folder)
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise full(subject) from error
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise not_writable(subject) from error
        raise StoreUnavailableError(
            f"{subject}: {error.strerror}.", subject=subject, remedy="Check the disk; then run again."
        ) from error


def full(subject: str) -> StoreFullError:
    return StoreFullError(
        f"No space is left for {subject}; the last step was undone.",
        subject=subject,
        remedy="Free disk space and run again: all that was committed stands.",
    )


def not_writable(subject: str) -> StoreReadOnlyError:
    return StoreReadOnlyError(
        f"{subject} cannot be written to.",
        subject=subject,
        remedy="Make the file and its folder writable, or set KGRAG_HOME to a folder that is.",
    )


def read_only(subject: str) -> StoreReadOnlyError:
    """A write on a handle that was opened for reading."""
    return StoreReadOnlyError(f"{subject} was opened for reading.", subject=subject, remedy='Open the stores with mode="write".')
