"""The bytes of a source file: where they are, their digest, and a local copy to parse."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any, BinaryIO
from urllib.parse import quote, unquote_to_bytes, urlsplit

from kgrag.errors import ConfigurationError, DocumentError

_BLOCK = 1 << 20
REMOTE_SCHEMES = ("s3", "gs", "gcs")


@dataclass(frozen=True, slots=True)
class Content:
    """A file on this machine. ``name`` is its path within its source, for messages and for its suffix."""

    name: str
    path: bytes
    size: int

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.name).suffix.lower()

    def open(self) -> BinaryIO:
        try:
            return open(self.path, "rb")
        except OSError as error:
            raise unreadable(self.name, error) from error

    def read(self, limit: int = -1) -> bytes:
        with self.open() as stream:
            return stream.read(limit)


def local_uri(path: str | bytes) -> str:
    """The ``file://`` URI of an absolute path; any byte a file name may hold survives."""
    return "file://" + quote(os.fsencode(path), safe="/")


def local_path(uri: str) -> bytes:
    """The path of a ``file://`` URI."""
    return unquote_to_bytes(uri.removeprefix("file://"))


@contextmanager
def fetch(uri: str, name: str) -> Iterator[Content]:
    """The file as a local one; a remote one is copied to a temporary file. Raises DocumentError."""
    if uri.startswith("file://"):
        path = local_path(uri)
        try:
            size = os.stat(path).st_size
        except OSError as error:
            raise unreadable(name, error) from error
        yield Content(name, path, size)
        return
    with tempfile.NamedTemporaryFile(prefix="kgrag-") as copy:
        with _reader(uri, name) as source:
            shutil.copyfileobj(source, copy, _BLOCK)
        copy.flush()
        yield Content(name, os.fsencode(copy.name), os.path.getsize(copy.name))


def file_digest(uri: str, name: str) -> str:
    """Digest of a file's bytes, read as a stream: an unchanged file need not be parsed again. Raises DocumentError."""
    found = hashlib.blake2b(digest_size=16)
    with _reader(uri, name) as stream:
        try:
            while block := stream.read(_BLOCK):
                found.update(block)
        except OSError as error:
            raise unreadable(name, error) from error
    return found.hexdigest()


@contextmanager
def _reader(uri: str, name: str) -> Iterator[Any]:
    try:
        if uri.startswith("file://"):
            stream: Any = open(local_path(uri), "rb")  # noqa: SIM115
        else:
            filesystem, key = remote(uri)
            stream = filesystem.open_input_stream(key)
    except OSError as error:
        raise unreadable(name, error) from error
    with stream:
        yield stream


def remote(uri: str) -> tuple[Any, str]:
    """The pyarrow file system of a remote URI and the path in it. Raises ConfigurationError."""
    parts = urlsplit(uri)
    if parts.scheme not in REMOTE_SCHEMES:
        raise ConfigurationError(
            f"Sources under {parts.scheme}:// cannot be read.",
            subject=uri,
            remedy="Give a local path or glob, - for standard input, or an s3:// or gs:// URL.",
        )
    if "@" in parts.netloc:
        raise ConfigurationError(
            "A source's URL must not hold credentials.", subject=parts.hostname or "", remedy="Set them in the environment (AWS_*)."
        )
    root = f"{parts.scheme}://{parts.netloc}" + (f"?{parts.query}" if parts.query else "")
    return _filesystem(root), unquote_to_bytes(parts.netloc + parts.path).decode("utf-8", "replace")


@lru_cache(maxsize=32)
def _filesystem(root: str) -> Any:
    import pyarrow as pa
    from pyarrow import fs

    try:
        return fs.FileSystem.from_uri(root)[0]
    except (pa.ArrowInvalid, OSError) as error:
        raise ConfigurationError(
            f"{root} cannot be opened: {error}", subject=root, remedy="Check the URL and its options."
        ) from error


def unreadable(name: str, error: OSError) -> DocumentError:
    """What an operating system error on a source file means."""
    if isinstance(error, FileNotFoundError):
        return DocumentError("The file is gone.", subject=name, remedy="It was moved or deleted after it was listed: run again.")
    if isinstance(error, PermissionError):
        return DocumentError("The file may not be read.", subject=name, remedy="Give this user read permission on it.")
    if isinstance(error, IsADirectoryError):
        return DocumentError("It is a folder, not a file.", subject=name, remedy="Give it as a source of its own.")
    reason = error.strerror or str(error) or type(error).__name__
    return DocumentError(f"The file cannot be read: {reason}.", subject=name, remedy="Check the disk or the connection.")
